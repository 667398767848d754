"""What a row's run is meant to be, and how a result departs from it."""

from typing import Any

import pytest

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
