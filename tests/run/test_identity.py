"""The name of a run: made of words and values, and of nothing that a move of the code could change."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from hornn.build import build_data
from hornn.recipe import flatten, read, resolve
from hornn.reporting.commands import write_pages
from hornn.run import identity
from hornn.run.composed import as_dict
from hornn.run.identity import EARLY_STOPPING, MACHINE, WITHOUT_EFFECT, identify, name_of

ROOT = Path(__file__).parents[2]
COMMITTED = sorted((ROOT / "outputs" / "tables").glob("*/*.json"))
CONFIG: dict[str, Any] = {
    "seed": 1,
    "run_dir": None,
    "model": {"_target_": "hornn.cells.elman.Rnn", "_partial_": True, "hidden_size": 4},
    "data": {"_target_": "hornn.data.ptb.build_data", "root": "/a", "unit": "word"},
    "network": {"num_layers": 1, "backend": "auto"},
    "trainer": {"accelerator": "cpu", "devices": 1, "max_epochs": 3},
    "sweep": {"rows": []},
    "lr": 0.5,
}
CHOICES = {"model": "rnn", "data": "ptb", "network": "default", "trainer": "cpu", "logger": "csv"}


def changed(dotted: str, value: Any) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(json.dumps(CONFIG))
    *parents, key = dotted.split(".")
    node = config
    for parent in parents:
        node = node.setdefault(parent, {})
    node[key] = value
    return config


def name(config: dict[str, Any], **choices: str) -> str:
    return identify({**CHOICES, **choices}, config).name


def test_who_a_run_is() -> None:
    who = identify(CHOICES, CONFIG)
    assert who.choices == {"model": "rnn", "data": "ptb", "network": "default"}
    assert who.config == {
        "model": {"hidden_size": 4},
        "data": {"unit": "word"},
        "network": {"num_layers": 1},
        "trainer": {"max_epochs": 3},
        "lr": 0.5,
    }
    assert who.where == {"trainer.accelerator": "cpu", "trainer.devices": 1, "network.backend": "auto"}
    assert re.fullmatch("[0-9a-f]{10}", who.name)
    assert who.folder == Path(f"outputs/rnn/ptb/{who.name}/seed=1")
    assert identify(CHOICES, changed("run_dir", "here")).folder == Path("here")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("seed", 2), ("sweep", {}), ("data.root", "/b"), ("model._target_", "elsewhere.Rnn"), ("lr", 0.50)),
        *(("trainer.devices", 2), ("trainer.strategy", "ddp"), ("trainer.accelerator", "gpu")),
        *(("network.backend", "eager"), ("trainer.max_epochs", 3.0), ("model._partial_", False)),
    ],
)
def test_what_decides_no_number_is_no_part_of_the_name(key: str, value: Any) -> None:
    assert name(changed(key, value)) == name(CONFIG)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("lr", 0.6), ("model.hidden_size", 5), ("trainer.max_epochs", 4), ("data.unit", "char")),
        *(("network.num_layers", 2), ("init_from", "a/best.ckpt"), ("model.bias", False), ("lr", None)),
    ],
)
def test_any_other_value_makes_another_name(key: str, value: Any) -> None:
    assert name(changed(key, value)) != name(CONFIG)


@pytest.mark.parametrize("group", ["model", "data", "network", "head", "optimizer", "schedule"])
def test_another_choice_makes_another_name(group: str) -> None:
    assert name(CONFIG, **{group: "other"}) != name(CONFIG)


def test_where_it_is_logged_and_computed_is_no_choice_that_counts() -> None:
    assert name(CONFIG, trainer="gpu", logger="wandb", experiment="hornn/ptb") == name(CONFIG)


def test_one_name_for_all_seeds_of_a_row_that_starts_from_another_run() -> None:
    seeds = [{**changed("init_from", f"a/seed={seed}/best.ckpt"), "seed": seed} for seed in (1, 2)]
    assert name(seeds[0]) == name(seeds[1])
    assert name({**seeds[0], "init_from": "a/seed=2/best.ckpt"}) != name(seeds[0])
    counted = {**CONFIG, "model": {"_counted_": True}}
    mixed = [
        {**counted, "seed": seed, "init_from": [f"{run}/seed={seed}/best.ckpt" for run in "ab"]}
        for seed in (1, 2)
    ]
    assert name(mixed[0]) == name(mixed[1])
    assert (
        name({**mixed[0], "init_from": mixed[0]["init_from"][:1]})
        != name(mixed[0])
        != name({**counted, "seed": 1})
    )


def test_every_value_of_a_composed_run_counts_or_is_listed() -> None:
    """Each value changed alone makes another name, but for those that are listed as of no effect, or as the machine."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("config", ["data=ptb"], return_hydra_config=True)
    choices = cfg.hydra.runtime.choices
    config = as_dict(OmegaConf.masked_copy(cfg, [key for key in cfg if key != "hydra"]))
    here = identify(choices, config).name
    silent = {*WITHOUT_EFFECT, *MACHINE}
    for key, value in flatten(config).items():
        if key.rpartition(".")[2].startswith("_") or key.partition(".")[0] in (
            "logger",
            "callbacks",
            "sweep",
        ):
            continue
        other = json.loads(json.dumps(config))
        *parents, last = key.split(".")
        node = other
        for parent in parents:
            node = node[parent]
        node[last] = f"not {value}"
        assert (identify(choices, other).name == here) is (key in silent), key
    for key in silent - {"data.url", "trainer.strategy", "trainer.num_nodes"}:  # of some choices only
        assert OmegaConf.select(cfg, key, default="absent") != "absent", key


@pytest.fixture
def own_text(tmp_path: Path) -> dict[str, Any]:
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text(f"{split} a b c\n")
    paths = {split: str(tmp_path / f"{split}.txt") for split in ("train", "valid", "test")}
    data = {
        "_text_": ["train", "valid", "test"],
        "cache_dir": str(tmp_path / "cache"),
        "unit": "word",
        **paths,
    }
    return changed("data", data)


def test_own_text_is_named_by_what_it_holds(own_text: dict[str, Any], tmp_path: Path) -> None:
    who = identify(CHOICES, own_text)
    assert who.config["data"].keys() == {"unit", "text"}
    assert who.where["data.train"] == str(tmp_path / "train.txt")
    moved = tmp_path / "moved.txt"
    shutil.copy(tmp_path / "train.txt", moved)
    elsewhere = {**own_text, "data": {**own_text["data"], "train": str(moved)}}
    assert name(elsewhere) == who.name
    with moved.open("a") as file:
        file.write("one line more\n")
    assert name(elsewhere) != who.name


def test_a_relative_path_is_kept_whole_and_is_no_part_of_the_name(
    own_text: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    relative = {**own_text, "data": {**own_text["data"], "train": "train.txt", "valid": "~/valid.txt"}}
    assert identify(CHOICES, relative).where == identify(CHOICES, own_text).where
    assert name(relative) == name(own_text)


def test_text_that_is_not_there(own_text: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "valid.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no text file data.valid=.*give the path"):
        identify(CHOICES, own_text)


def test_a_corpus_folder_of_ones_own_is_named_by_what_it_holds(tmp_path: Path) -> None:
    corpus = tmp_path / "mine"
    (corpus / "etc").mkdir(parents=True)
    (corpus / "etc" / "mine.lm").write_text("one")
    own = changed(
        "data",
        {
            "_text_": "folder",
            "root": str(tmp_path),
            "cache_dir": str(tmp_path / "cache"),
            "name": "mine",
            "url": "u",
        },
    )
    before = name(own, data="an4")
    assert name(own, data="mine") != before  # which is published, and not read
    without_url = {**own, "data": {key: value for key, value in own["data"].items() if key != "url"}}
    in_words = name(without_url, data="mine")  # which nobody publishes
    (corpus / "etc" / "mine.lm").write_text("two")
    assert name(own, data="an4") != before
    assert name(without_url, data="mine") != in_words
    (corpus / "etc" / "mine.lm").rename(corpus / "etc" / "yours.lm")
    (corpus / "etc" / "yours.lm").write_text("one")
    assert name(own, data="an4") != before
    shutil.rmtree(corpus)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*mine: give data.root and data.name"):
        name(own, data="an4")
    name(own, data="mine")


def test_a_big_text_is_read_once(own_text: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    big = tmp_path / "train.txt"
    big.write_text("a b c d e f\n" * 100_000)
    before = name(own_text)
    read_files: list[Path] = []
    from hornn.data import content

    original = content.checksum
    monkeypatch.setattr(
        content, "checksum", lambda path, kind: (read_files.append(path), original(path, kind))[1]
    )
    assert name(own_text) == before
    assert big not in read_files
    with big.open("a") as file:
        file.write("g\n")
    assert name(own_text) != before
    assert big in read_files


def test_there_are_committed_results() -> None:
    assert len(COMMITTED) >= 190


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_committed_name_is_that_of_its_choices_and_values(path: Path) -> None:
    result = json.loads(path.read_text())
    assert name_of(result["choices"], result["config"]) == result["name"]


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of all that names and tables are made from."""
    for part in ("conf", "sweeps"):
        shutil.copytree(ROOT / part, tmp_path / part, symlinks=True)
    (tmp_path / "outputs").mkdir()
    shutil.copytree(ROOT / "outputs" / "tables", tmp_path / "outputs" / "tables")
    yield tmp_path
    read.cache_clear()
    identity.added_keys.cache_clear()


def pages_of(folder: Path) -> dict[str, str]:
    """The pages beside the results; those of a copy are written first."""
    tables = folder / "outputs" / "tables"
    if folder != ROOT:
        write_pages(folder / "outputs", folder / "sweeps", folder)
    return {str(path.relative_to(tables)): path.read_text() for path in tables.rglob("README.md")}


def names_of_rows(copy: Path) -> dict[str, str]:
    found = {}
    for path in sorted((copy / "sweeps").glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        node = content.pop("sweep", {})
        for row in node.get("rows", ()):
            if row.get("run") is not None:
                parts = identity.hashed_part(*resolve(row["run"], content, copy / "conf"))
                found[f"{path.stem}: {row['name']}"] = name_of(*parts)
    return found


def test_a_move_of_every_class_moves_no_name_and_no_table(copy: Path) -> None:
    before = names_of_rows(copy)
    for path in (copy / "conf").rglob("*.yaml"):
        text = path.read_text()
        path.write_text(
            re.sub(r"^_target_: .*\.(\w+)$", r"_target_: somewhere.else_.\1", text, flags=re.MULTILINE)
        )
    read.cache_clear()
    assert names_of_rows(copy) == before
    assert pages_of(copy) == pages_of(ROOT)


@pytest.mark.thorough
def test_a_key_that_is_added_at_its_neutral_value_moves_no_name_and_no_table(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names_of_rows(copy)
    added = copy / "added_keys.yaml"
    keys = [
        {"key": "new_key", "added": "2026-12-01", "neutral": None},
        {"key": "optimizer.warm_up", "choice": "optimizer=sgd", "added": "2026-12-01", "neutral": 0.0},
    ]
    added.write_text(identity.ADDED.read_text() + yaml.safe_dump(keys))
    for name, line in {"config": "new_key: null", "optimizer/sgd": "warm_up: 0"}.items():
        path = copy / "conf" / f"{name}.yaml"
        path.write_text(f"{path.read_text()}\n{line}\n")
    read.cache_clear()
    assert names_of_rows(copy)["hornn_table1: rnn"] != before["hornn_table1: rnn"], "it must be listed"
    monkeypatch.setattr(identity, "ADDED", added)
    assert names_of_rows(copy) == before
    assert pages_of(copy) == pages_of(ROOT)


@pytest.mark.parametrize("overrides", [[], ["data=ptb"], ["data=text8"], ["data=text8", "data.variant=head"]])
def test_the_folder_names_the_corpus_as_its_results_do(overrides: list[str]) -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("config", overrides, return_hydra_config=True)
    config = as_dict(OmegaConf.masked_copy(cfg, [key for key in cfg if key != "hydra"]))
    folder = identify(cfg.hydra.runtime.choices, config).folder
    assert folder.parts[2] == build_data(config["data"]).name


def test_callbacks_that_only_watch_are_no_part_of_a_name() -> None:
    """Early stopping is: it decides how long a run trains. Without it the name is that of before there were any."""
    watching = {"_target_": "elsewhere.Norms", "_watches_": True, "every": 3}
    stopping = {"_target_": "elsewhere.Stop", "patience": 3}
    none, watched, stopped = ({"none": None}, {"norms": watching}, {"stop": stopping, "norms": watching})
    plain = name(CONFIG)
    assert name({**CONFIG, "callbacks": none}) == name({**CONFIG, "callbacks": watched}) == plain
    assert (
        name({**CONFIG, "callbacks": stopped}) == name({**CONFIG, "callbacks": {"stop": stopping}}) != plain
    )
    other = {"_target_": "elsewhere.Halt", "patience": 3}
    own = [{"_target_": "elsewhere.Stop"}, stopping, other, {**other, "_target_": EARLY_STOPPING}]
    assert len({name({**CONFIG, "callbacks": {"stop": each}}) for each in own} | {plain}) == 5
