"""The record of a run's epochs, written and read."""

import os
from pathlib import Path

import pytest

from hornn.run.epochs import METRICS, read_epochs, write_epochs


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_epochs(tmp_path) == []
    epochs = [{"epoch": 1, "valid_ppl": 200.1}, {"epoch": 2, "valid_ppl": 1 / 3}]
    write_epochs(tmp_path, epochs)
    assert read_epochs(tmp_path) == epochs


def test_epochs_from_before_a_column_was_recorded_leave_it_empty(tmp_path: Path) -> None:
    write_epochs(tmp_path, [{"epoch": 1}, {"epoch": 2, "alpha": 0.6}])
    assert (tmp_path / METRICS).read_text() == "epoch,alpha\n1,\n2,0.6\n"
    assert read_epochs(tmp_path) == [{"epoch": 1}, {"epoch": 2, "alpha": 0.6}]
    write_epochs(tmp_path, [{"epoch": 1, "grad_norm": 0.0}, {"epoch": 2}])  # and one that is recorded no more
    assert read_epochs(tmp_path) == [{"epoch": 1, "grad_norm": 0.0}, {"epoch": 2}]


@pytest.mark.parametrize(
    ("content", "epochs"),
    [
        (b"", []),
        (b"epoch,valid_ppl\n", []),
        (b"epoch,valid_ppl\n1,200.5\n2,15", [{"epoch": 1, "valid_ppl": 200.5}]),  # half of 150
        (b"epoch,valid_ppl\n1\n", [{"epoch": 1}]),
        (b"epoch,valid_ppl\n1,low,3\n", [{"epoch": 1}]),
        (b"epoch,valid_ppl\n1,1e308\n2,nan\n", [{"epoch": 1}, {"epoch": 2}]),
        (b"\xff\xfe", []),
    ],
)
def test_a_file_that_is_no_whole_table(
    tmp_path: Path, content: bytes, epochs: list[dict[str, float]]
) -> None:
    (tmp_path / METRICS).write_bytes(content)
    assert read_epochs(tmp_path) == epochs


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / METRICS).mkdir()
    assert read_epochs(tmp_path) == []


def test_a_pipe_in_the_place_of_the_file_holds_no_epochs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / METRICS)
    assert read_epochs(tmp_path) == []
