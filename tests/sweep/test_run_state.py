"""What the folder of a run tells a launcher."""

from pathlib import Path

import pytest

from hornn.metrics import CHARACTERS, FRAMES, WORDS
from hornn.result import write_result
from hornn.sweep.run_state import claim, is_claimed, last_lines, read_progress, result_of


def test_progress_is_the_last_row(tmp_path: Path) -> None:
    assert read_progress(tmp_path) is None
    path = tmp_path / "metrics.csv"
    for text, expected in (
        ("epoch,lr,valid_ppl\n", None),
        ("epoch,lr,valid_ppl\n1,0.5,200.5\n2.5,0.5,150.25\n", (2.5, 150.25, WORDS)),
        ("epoch,lr,valid_nll\n1,0.5,3.25\n", (1, 3.25, FRAMES)),
        ("epoch,lr,valid_ppl,valid_bpc\n1,0.5,4.0,2.0\n", (1, 4.0, CHARACTERS)),
        ("epoch,lr,valid_ppl\n1,0.5", None),
        ("epoch,lr,valid_ppl\n1,0.5,low", None),
    ):
        path.write_text(text)
        assert read_progress(tmp_path) == expected


def test_no_progress_is_read_of_what_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").mkdir()
    assert read_progress(tmp_path) is None


def test_a_claim_is_one_launchers(tmp_path: Path) -> None:
    run_dir = tmp_path / "a" / "run"
    assert not is_claimed(run_dir)
    first = claim(run_dir)
    assert first is not None
    assert is_claimed(run_dir)
    assert claim(run_dir) is None
    first.close()
    assert not is_claimed(run_dir)
    with pytest.raises(OSError, match=r"\.claim"):
        claim(Path("/dev/null/run"))


def test_the_result_of_another_run(tmp_path: Path) -> None:
    assert result_of(tmp_path, "aaaaaaaaaa", 1) is None
    scores = {"valid_ppl": 90.0, "test_ppl": 80.0}
    write_result(tmp_path, {"status": "completed", "name": "aaaaaaaaaa", "seed": 1, **scores})
    result = result_of(tmp_path, "aaaaaaaaaa", 1)
    assert result is not None
    assert result["status"] == "completed"
    with pytest.raises(
        ValueError, match="holds the result of run aaaaaaaaaa, seed 1; this is run aaaaaaaaaa"
    ):
        result_of(tmp_path, "aaaaaaaaaa", 2)


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"old\nwords\n" + b"\n\nnew \n\xff end")
    assert last_lines(log, 3) == ["words", "new", "\ufffd end"]
    assert last_lines(log, 15, start=10) == ["new", "\ufffd end"]
    log.write_bytes(b"x" * 200_000 + b"\nend\n")
    assert last_lines(log, 1) == ["end"]


def test_the_result_of_another_name(tmp_path: Path) -> None:
    scores = {"valid_ppl": 90.0, "test_ppl": 80.0}
    write_result(tmp_path, {"status": "completed", "name": "aaaaaaaaaa", "seed": 1, **scores})
    with pytest.raises(
        ValueError, match="holds the result of run aaaaaaaaaa, seed 1; this is run bbbbbbbbbb"
    ):
        result_of(tmp_path, "bbbbbbbbbb", 1)
