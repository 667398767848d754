"""result.json: whole or not there, plain JSON, read back as it was; and what it says of the program."""

import errno
import json
import math
import os
import subprocess
from pathlib import Path

import pytest

import hornn
from hornn.metrics import bits, perplexity
from hornn.result import SCHEMA_VERSION, Damaged, finite, read_result, write_result
from hornn.run import provenance
from hornn.writing import write_atomically


def test_written_and_read_back(tmp_path: Path) -> None:
    assert read_result(tmp_path) is None
    scores = {"valid_ppl": 102.5, "test_ppl": 101.25}
    write_result(tmp_path, {"status": "completed", **scores, "metrics": [{"epoch": 1}]})
    assert read_result(tmp_path) == {
        "schema_version": SCHEMA_VERSION,
        "status": "completed",
        "valid_ppl": 102.5,
        "test_ppl": 101.25,
        "metrics": [{"epoch": 1}],
    }
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_numbers_that_json_does_not_have_become_null(tmp_path: Path) -> None:
    write_result(tmp_path, {"a": math.nan, "b": [math.inf, -math.inf, 1.5], "c": {"d": (2, math.nan)}})
    text = (tmp_path / "result.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["c"] == {"d": [2, None]}
    assert finite([math.inf, 0.0, "x", None, True]) == [None, 0.0, "x", None, True]


WHOLE = {"schema_version": SCHEMA_VERSION, "status": "completed", "valid_ppl": 102.5, "test_ppl": 101.25}


def changed(**keys: object) -> str:
    """A whole result with other values; `...` takes a key away."""
    return json.dumps({key: value for key, value in {**WHOLE, **keys}.items() if value is not ...})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[1]", "it must hold keys and values, got [1]"),
        ("{}", "it is without schema_version, status"),
        ('"x"', 'it must hold keys and values, got "x"'),
        ("7", "it must hold keys and values, got 7"),
        ("[" * 100_000, "its brackets are nested too deeply"),
        ("[" * 101 + "]" * 101, "its brackets are nested too deeply"),
        (changed(status=...), "it is without status"),
        (changed(status="done"), 'status must be completed or diverged, got "done"'),
        (changed(test_ppl=...), "it is without test_ppl"),
        (changed(test_ppl="low"), 'test_ppl must be a number or null, got "low"'),
        (changed(test_ppl=True), "test_ppl must be a number or null, got true"),
        (changed(test_ppl=10**400), f"a number must be at most 1.8e+308, got 1{'0' * 59}"),
        (changed(test_ppl=1).replace("1}", "1e999}"), "a number must be at most 1.8e+308, got 1e999"),
        (changed(dtype="fp32"), 'dtype must be keys and values, got "fp32"'),
        (changed(versions="x"), 'versions must be keys and values, got "x"'),
        (changed(starts=5), "starts must be a list, got 5"),
        (changed(dynamic={"seq_len": [1]}), "seq_len must be a whole number or null, got [1]"),
        (changed(peak_memory_mb="much"), 'peak_memory_mb must be a number or null, got "much"'),
        (changed(test_ppl=-1), "test_ppl must be above 0, got -1"),
        (changed(test_ppl=math.nan), "NaN is no number"),
        (changed(metrics="none"), 'metrics must be a list, got "none"'),
        (changed(metrics=[1]), "it must hold keys and values, got 1"),
        (changed(metrics=[{"valid_ppl": 0}]), "valid_ppl must be above 0, got 0"),
        (changed(config=["x" * 100]), 'config must be keys and values, got ["' + "x" * 58 + "..."),
        (changed(commit=7), "commit must be text or null, got 7"),
        (changed(seed=1.5), "seed must be a whole number, got 1.5"),
    ],
)
def test_a_damaged_result_is_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(Damaged) as caught:
        read_result(tmp_path)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}/result.json is damaged (")
    assert reason in said
    assert said.endswith("): remove it, or give another run_dir")


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"schema_version": 99}')
    with pytest.raises(
        ValueError, match=f"has schema version 99, this program reads {SCHEMA_VERSION}: remove it"
    ):
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
    with pytest.raises(OSError, match=r"the folder of \S+none/a.txt does not exist: make it"):
        write_atomically(tmp_path / "none" / "a.txt", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "old"}


@pytest.mark.parametrize("size", [2, 10_000])
def test_units_of_a_uniform_guess(size: int) -> None:
    assert perplexity(math.log(size)) == pytest.approx(size, rel=1e-12)
    assert bits(math.log(size)) == pytest.approx(math.log2(size), rel=1e-12)
    assert perplexity(1e6) == math.inf


def test_a_result_does_not_say_where_the_machine_keeps_corpora() -> None:
    words = ["data=ptb", "data.root=/here", "+data.cache_dir=/there", "data.batch_size=2", "data.url=x"]
    assert provenance.Starts({"dirty": False}, words).summary()["overrides"] == [
        "data=ptb",
        "data.batch_size=2",
    ]


def test_a_checkout_whose_path_is_no_text_has_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / os.fsdecode(b"l\xe4n")
    package = folder / "src" / "hornn"
    package.mkdir(parents=True)
    (package / "one.py").touch()
    by = ["git", "-C", str(folder), "-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    for words in (["init"], ["add", "."], ["commit", "-m", "all"]):
        subprocess.run([*by, *words], check=True, capture_output=True)
    monkeypatch.setattr(provenance, "PACKAGE", package)
    assert provenance.commit()["dirty"] is False


def test_changes_of_the_program_alone_are_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results and tables that were kept while runs go on do not mark those runs."""

    def git(*words: str) -> None:
        identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True)

    assert Path(hornn.__file__).parent == provenance.PACKAGE
    program = tmp_path / "src" / "hornn" / "run" / "train.py"
    others = [tmp_path / "outputs" / "tables" / "toy.json", tmp_path / "README.md"]
    for path in (program, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("as committed")
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "src" / "hornn")
    assert provenance.commit() == {"commit": None, "dirty": None}
    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    for path in others:
        path.write_text("changed")
    found = provenance.commit()
    assert len(found["commit"]) == 40
    assert found["dirty"] is False
    monkeypatch.setenv("GIT_DIR", str(provenance.PACKAGE / "of somebody else"))
    assert provenance.commit() == found
    for path, dirty in ((tmp_path / "sweeps" / "mine.yaml", False), (program.with_name("mine.py"), True)):
        path.parent.mkdir(exist_ok=True)
        path.write_text("new")
        assert provenance.commit() == {**found, "dirty": dirty}
    program.with_name("mine.py").unlink()
    program.write_text("changed")
    assert provenance.commit() == {**found, "dirty": True}
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / ".venv" / "lib" / "site-packages" / "hornn")
    provenance.PACKAGE.mkdir(parents=True)
    assert provenance.commit() == {"commit": None, "dirty": None}
