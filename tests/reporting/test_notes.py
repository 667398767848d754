"""What stands below a table."""

from typing import Any

from hornn.reporting.comma_separated import table_csv
from hornn.reporting.notes import table_notes, what_is_missing
from reporting.place import cells_of, table_of


def test_every_row_without_runs_says_why(place: Any) -> None:
    table = table_of(place)
    assert [line.status for line in table.lines] == ["not run", "not run", "not run", "not run", "not built"]
    text = "\n".join(table_notes(table))
    assert "0 of 4 rows are measured. `python src/train.py -m sweeps=toy` runs what is missing." in text


def test_different_devices_have_letters_that_the_notes_explain(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2, 120.0, device="gpu")
    place.commit("sum-2", 1, 110.0, device="gpu")
    table = table_of(place)
    assert cells_of(table, "rnn")["device"] == "A, B"
    assert cells_of(table, "sum-2")["device"] == "B"
    assert "The runs are of commit 1234567. Devices: A: cpu (abacus); B: gpu." in table_notes(table)
    assert table_csv(table).splitlines()[1].count("cpu (abacus); gpu") == 1


def test_a_device_that_is_everywhere_the_same_is_told_once(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    assert "device" not in cells_of(table_of(place), "rnn")
    assert "The runs are of commit 1234567. Devices: cpu (abacus)." in table_notes(table_of(place))


def test_few_commits_are_listed_and_many_counted(place: Any) -> None:
    rows = ("rnn", "sum-2", "sum-3", "max-2")
    for seed, row in enumerate(rows[:2], start=1):
        place.commit(row, 1, 120.0, commit=f"{seed}" * 10)
    assert "The runs are of commits 1111111, 2222222." in "\n".join(table_notes(table_of(place)))
    for seed, row in enumerate([*rows, *rows[:2]], start=1):
        place.commit(row, 1 + (seed > 4), 120.0, commit=f"{seed}" * 10)
    assert "The runs are of 6 commits, which their files name." in "\n".join(table_notes(table_of(place)))


def test_a_gpu_that_was_shared_gives_no_time(place: Any) -> None:
    """Nor does one of which nobody says that it was not."""
    place.commit("rnn", 1, 120.0, device="gpu", runs_on_gpu=20)
    place.commit("sum-2", 1, 110.0, device="gpu")
    place.commit("sum-3", 1, 109.0, device="gpu", runs_on_gpu=1)
    table = table_of(place)
    seconds = {line.row.name: line.seconds for line in table.lines}
    assert seconds["rnn"] is None
    assert seconds["sum-2"] is None
    assert seconds["sum-3"] == 12.5
    marked = [
        line.row.name for line in table.lines if "its GPU was shared with other runs" in str(line.marks)
    ]
    assert marked == ["rnn", "sum-2"]


def test_the_precisions_are_told_where_they_differ(place: Any) -> None:
    place.commit("rnn", 1, 120.0, dtype={"weights": "fp32", "output_layer_in_training": "fp32"})
    assert "bf16" not in "".join(table_notes(table_of(place)))
    place.commit("sum-2", 1, 110.0, dtype={"weights": "fp32", "output_layer_in_training": "bf16"})
    place.commit("sum-3", 1, 109.0, dtype={"weights": "fp64"})
    assert "multiplied in bf16 in 1 of 2 runs, else in fp32." in "".join(table_notes(table_of(place)))
    place.commit("sum-3", 1, 110.0, dtype={"weights": "fp32", "output_layer_in_training": "fp16"})
    assert "in bf16 in 1 and in fp16 in 1 of 3 runs, else in fp32." in "".join(table_notes(table_of(place)))
    place.commit("max-2", 1, 99.0, dtype={"output_layer_in_training": "fp32, then fp16"})
    assert "in fp16 in 1 and in fp32, then fp16 in 1 of 4 runs" in "".join(table_notes(table_of(place)))
    assert "time loop" not in "".join(table_notes(table_of(place)))
    place.commit("rnn", 2, 120.0, dtype={"output_layer_in_training": "bf16", "time_loop_in_training": "bf16"})
    said = "In training the time loop multiplied in bf16 in 1 of 5 runs, else in fp32."
    assert said in "".join(table_notes(table_of(place)))


def test_missing_seeds_are_counted(filled: Any) -> None:
    """One row has both of its two seeds, two rows have one."""
    (text,) = what_is_missing(table_of(filled))
    assert text.startswith("3 of 4 rows are measured, by 4 of 8 runs. `")


def test_five_commits_are_listed(place: Any) -> None:
    for number, (row, seed) in enumerate(
        [("rnn", 1), ("rnn", 2), ("sum-2", 1), ("sum-2", 2), ("sum-3", 1)], start=1
    ):
        place.commit(row, seed, 120.0, commit=f"{number}" * 10)
    assert "of commits 1111111, 2222222, 3333333, 4444444, 5555555." in "\n".join(
        table_notes(table_of(place))
    )


def test_the_first_and_the_last_day_are_told(place: Any) -> None:
    for row, day in (("rnn", "2026-03-02"), ("sum-2", "2026-01-05"), ("sum-3", "2026-02-28")):
        place.commit(row, 1, finished=f"{day}T23:59:00+00:00")
    assert "commit 1234567, 2026-01-05 to 2026-03-02. Devices" in "\n".join(table_notes(table_of(place)))
    for row in ("sum-2", "sum-3"):
        place.commit(row, 1)
    assert "commit 1234567, 2026-03-02. Devices" in "\n".join(table_notes(table_of(place)))


def test_sources_beside_the_paper_s_own_are_named(place: Any) -> None:
    assert "Published numbers: Nobody 2000, table 1 (recalled)." in table_notes(table_of(place))


def test_runs_that_diverged_can_be_repeated(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    assert "retry_failed" not in "".join(table_notes(table_of(place)))
    diverged = place.result(1, 0.0, status="diverged")
    place.record({"row": "sum-2", "seed": 1, "status": "failed", "result": diverged})
    assert "With `hydra.sweeper.retry_failed=true` it also" in "".join(table_notes(table_of(place)))
