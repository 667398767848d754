"""What each table costs, as a block of a page has it."""

from typing import Any

import pytest

from hornn.reporting.cost_panels import draw_costs, time_unit, training_times
from hornn.reporting.costs import costs_excerpt
from hornn.reporting.run_data import page_data
from reporting.place import SWEEP, table_of


def cells(place: Any) -> list[str]:
    home = {"toy": place.folder / "outputs" / "tables" / "toy" / "README.md"}
    lines = costs_excerpt([table_of(place)], home, place.folder / "docs").splitlines()
    assert len(lines) == 3
    return [cell.strip() for cell in lines[2].strip("|").split("|")]


def epochs(count: int, seconds: float) -> dict[str, Any]:
    return {"metrics": [{"epoch": epoch + 1, "seconds": seconds} for epoch in range(count)]}


def test_hours_are_of_one_seed_of_every_row(place: Any) -> None:
    name, link, *rest = cells(place)
    assert (name, rest[1:]) == ("`toy`", ["0", "", "", ""])
    assert link.endswith("](../outputs/tables/toy/README.md)")
    place.commit("rnn", 1, **epochs(3, 600.0), peak_memory_mb=400.6)
    place.commit("rnn", 2, **epochs(4, 600.0))
    place.commit("sum-2", 2, **epochs(1, 5400.0), peak_memory_mb=80)
    assert cells(place)[3:] == ["2", "2.0", "30 to 90", "401"]


def test_a_run_that_shared_its_gpu_has_no_time(place: Any) -> None:
    place.commit("rnn", 1, **epochs(3, 600.0), device="gpu", runs_on_gpu=4)
    assert cells(place)[3:] == ["1", "", "", ""]
    place.commit("sum-2", 1, **epochs(2, 10.0))
    assert cells(place)[3:] == ["2", "0.0 (1 of 2 rows)", "below 1", "0"]


@pytest.mark.parametrize("key", ["wall_seconds", "tokens_per_second"])
def test_a_time_of_a_shared_gpu_or_of_several_devices_is_no_number_of_a_row(place: Any, key: str) -> None:
    place.write_sweep("toy", SWEEP.replace("test_ppl", key))
    place.commit("rnn", 1, device="gpu", runs_on_gpu=4, **{key: 200.0})
    place.commit("sum-2", 1, device="one", runs_on_gpu=1, **{key: 100.0})
    place.commit("sum-2", 2, device="another", runs_on_gpu=1, **{key: 300.0})
    place.commit("sum-3", 1, device="one", runs_on_gpu=1, **{key: 70.0})
    table = table_of(place)
    told = {line.row.name: line.scores[key].values for line in table.lines if line.measured}
    assert told == {"rnn": (), "sum-2": (), "sum-3": (70.0,)}
    rows = page_data([table], place.results / "report", {})["rows"]
    assert not [row for row in ("toy/rnn", "toy/sum-2") if key in rows[row]["numbers"]]


@pytest.mark.parametrize(
    ("seconds", "unit"), [(7200.0, "hours"), (7199.0, "minutes"), (120.0, "minutes"), (119.0, "seconds")]
)
def test_a_unit_of_time_is_one_of_which_there_are_two(seconds: float, unit: str) -> None:
    assert time_unit(seconds)[0] == unit


def test_costs_are_in_the_units_of_their_axes(place: Any) -> None:
    place.commit("sum-2", 1, **epochs(2, 3600.0), num_parameters=8_640_000)
    place.commit("rnn", 1, **epochs(1, 1800.0), num_parameters=4_000_000)
    table, drawn = table_of(place), {}
    draw_costs(
        table.sweep.metrics[0], table.lines, lambda _, at, words: drawn.setdefault(words(at["rnn"]), at)
    )
    assert drawn["4,000,000 weights"] == pytest.approx({"sum-2": 8.64, "rnn": 4.0})
    assert drawn["0.5 hours"] == pytest.approx({"sum-2": 2.0, "rnn": 0.5})


def test_a_pace_on_another_device_is_none_of_the_best_run(place: Any) -> None:
    place.commit("rnn", 1, 100.0, device="cpu (one)")
    each = [{"epoch": epoch, "seconds": 5.0, "valid_ppl": 130.0} for epoch in (1, 2, 3)]
    place.commit("rnn", 2, 120.0, device="cpu (another)", metrics=each)
    assert training_times(table_of(place).lines).seconds == {"rnn": 3 * 12.5}
