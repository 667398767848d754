"""What a row's run is meant to be, and how a result departs from it."""

from pathlib import Path
from typing import Any

import pytest

from hornn.data.content import content_of
from hornn.reporting.departures import Recipe, departures
from reporting.place import read_sweep


def test_the_weights_that_a_row_starts_from_are_of_its_recipe(place: Any) -> None:
    """A result that started from scratch is not by it."""
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: other")
    rows = text.replace("name: sum-3\n", "name: sum-3\n      start: sum-2\n")
    scratch, other = (
        read_sweep(place.sweeps / "toy.yaml").rows,
        read_sweep(place.write_sweep("other", rows)).rows,
    )
    was, now = ({row.name: row for row in those}["sum-3"] for those in (scratch, other))
    assert was.identity != now.identity
    result = {"config": {"model": {"order": 3}, "init_from": None}}
    assert departures(was.recipe, result) == []
    (label,) = (row.label for row in other if row.name == "sum-2")
    assert departures(now.recipe, result) == [f"init_from=None, not the weights of {label}"]
    assert departures(now.recipe, {"config": {**result["config"], "init_from": "outputs/a/best.ckpt"}}) == []


@pytest.mark.parametrize(
    ("choices", "config", "expected"),
    [
        ({}, {}, []),
        ({"optimizer": "adamw"}, {}, ["optimizer=adamw, not sgd"]),
        ({}, {"optimizer": {"lr": 1}}, ["optimizer.lr=1, not 0.5"]),
        ({}, {"optimizer": {"lr": 0.5}, "seed": 1}, []),
        ({}, {"trainer": {"max_epochs": 3.0}}, []),  # equal numbers are one value
        ({}, {"schedule": {"gamma": 2, "delta": None}}, ["schedule.gamma=2, not given"]),
        (
            {"schedule": "halve_on_plateau"},
            {"schedule": {"relative_threshold": 0.0}},
            [],
        ),  # its neutral value
        ({}, {"data": {"text": "sha256:1"}}, []),  # what the text holds is no matter of a recipe
    ],
)
def test_departures(choices: dict[str, str], config: dict[str, Any], expected: list[str]) -> None:
    meant = Recipe({"optimizer": "sgd"}, {"optimizer": {"lr": 0.5}, "trainer": {"max_epochs": 3}, "seed": 1})
    assert departures(meant, {"choices": choices, "config": config}) == expected


def test_texts_are_told_apart_by_content_where_they_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that was moved is the same one; elsewhere, where there is none, its path as it was written tells."""
    monkeypatch.chdir(tmp_path)
    for language in ("de", "fr"):
        Path(language).mkdir()
        Path(language, "a.txt").write_text(f"{language}\n")
    content = content_of(["train"], {"train": "de/a.txt", "cache_dir": str(tmp_path)})
    where = {"data.train": str(tmp_path / "de/a.txt")}
    result = {"config": {"data": {"text": content}}, "where": where}
    german, french = (
        Recipe(config={"seed": 1}, texts={"data.train": f"{each}/a.txt"}) for each in ("de", "fr")
    )
    assert german.name != french.name
    other = ["another text than data.train=fr/a.txt"]
    assert (departures(german, result), departures(french, result)) == ([], other)

    moved = {**result, "where": {"data.train": "/elsewhere/text.txt"}}
    assert departures(german, moved) == []
    Path("de/a.txt").write_text("edited since\n")
    assert departures(german, result) == ["another text than data.train=de/a.txt"]

    for language in ("de", "fr"):
        Path(language, "a.txt").unlink()
    assert (departures(german, result), departures(french, result)) == ([], other)


def test_rows_that_differ_in_their_text_are_different_runs(place: Any) -> None:
    (place.folder / "conf/data/files.yaml").write_text("{_text_: [train], train: '???', unit: word}")
    run = "run: [model=hornn, model.order=2, data=files, data.train="
    text = (place.sweeps / "toy.yaml").read_text()
    text = text.replace("run: [model=hornn, model.order=2", f"{run}de.txt").replace(
        "run: [model=hornn, model.order=3", f"{run}fr.txt"
    )
    rows = {row.name: row for row in read_sweep(place.write_sweep("toy", text)).rows}
    assert rows["sum-2"].recipe.texts == {"data.train": "de.txt"}
    assert rows["sum-2"].identity != rows["sum-3"].identity


@pytest.mark.parametrize("path", ["???", "null", "'${oc.env:HOME}/a.txt'"])
def test_a_text_that_the_command_line_gives_is_of_no_recipe(place: Any, path: str) -> None:
    (place.folder / "conf/data/files.yaml").write_text("{_text_: [train], train: '???', unit: word}")
    text = (
        (place.sweeps / "toy.yaml")
        .read_text()
        .replace(
            "run: [model=hornn, model.order=2",
            f'run: [model=hornn, model.order=2, data=files, "data.train={path}"',
        )
    )
    (row,) = (row for row in read_sweep(place.write_sweep("toy", text)).rows if row.name == "sum-2")
    assert row.recipe.texts == {}
