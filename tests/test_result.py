"""result.json: whole or not there, plain JSON, read back as it was; and what it says of the program."""

import errno
import json
import math
import os
import subprocess
from pathlib import Path

import pytest

from hornn.metrics import bits, perplexity
from hornn.result import SCHEMA_VERSION, finite, read_result, write_atomically, write_result
from hornn.run import provenance


def test_written_and_read_back(tmp_path: Path) -> None:
    assert read_result(tmp_path) is None
    write_result(tmp_path, {"status": "completed", "test_ppl": 101.25, "metrics": [{"epoch": 1}]})
    assert read_result(tmp_path) == {
        "schema_version": SCHEMA_VERSION,
        "status": "completed",
        "test_ppl": 101.25,
        "metrics": [{"epoch": 1}],
    }
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_numbers_that_json_does_not_have_become_null(tmp_path: Path) -> None:
    write_result(tmp_path, {"a": math.nan, "b": [math.inf, -math.inf, 1.5], "c": {"d": (2, math.nan)}})
    text = (tmp_path / "result.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["c"] == {"d": [2, None]}
    assert finite([math.inf, 0.0, "x", None, True]) == [None, 0.0, "x", None, True]


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", '"x"', "7"])
def test_a_damaged_result_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(ValueError, match=r"result\.json is damaged .*: remove it, or give another run_dir"):
        read_result(tmp_path)


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"schema_version": 99}')
    with pytest.raises(ValueError, match=f"has schema version 99, this program reads {SCHEMA_VERSION}"):
        read_result(tmp_path)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    write_atomically(tmp_path / "a.txt", "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "a.txt", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "old"}


@pytest.mark.parametrize("size", [2, 10_000])
def test_units_of_a_uniform_guess(size: int) -> None:
    assert perplexity(math.log(size)) == pytest.approx(size, rel=1e-12)
    assert bits(math.log(size)) == pytest.approx(math.log2(size), rel=1e-12)
    assert perplexity(1e6) == math.inf


def test_changes_of_the_program_alone_are_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results and tables that were kept while runs go on do not mark those runs."""

    def git(*words: str) -> None:
        identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True)

    program = tmp_path / "src" / "hornn" / "provenance.py"
    others = [tmp_path / "outputs" / "tables" / "toy.json", tmp_path / "README.md"]
    for path in (program, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("as committed")
    monkeypatch.setattr(provenance, "__file__", str(program))
    assert provenance.commit() == {"commit": None, "dirty": None}
    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    for path in others:
        path.write_text("changed")
    found = provenance.commit()
    assert len(found["commit"]) == 40
    assert found["dirty"] is False
    program.write_text("changed")
    assert provenance.commit() == {**found, "dirty": True}
