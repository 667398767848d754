"""What each table costs, as a block of a page has it."""

from typing import Any

from hornn.reporting.costs import costs_excerpt
from reporting.place import table_of


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
