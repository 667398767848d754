"""The record of a sweep, which launchers share."""

import json
import multiprocessing
from pathlib import Path

import pytest

from hornn.sweep.record import Record
from sweep.entries import entry


def test_launches_are_merged(tmp_path: Path) -> None:
    record = Record("mini", tmp_path)
    assert record.read() == []
    record.merge([entry("a"), entry("b")])
    record.merge([entry("a", seed=2)])
    record.merge([entry("a", status="done")])
    assert record.read() == [entry("a", status="done"), entry("b"), entry("a", seed=2)]
    record.merge([entry("a", config="bbbbbbbbbb"), entry("a", config="cccccccccc")], supersede=True)
    assert [(e.row, e.seed, e.name[0]) for e in record.read()] == [
        ("b", 1, "a"),
        ("a", 2, "a"),
        ("a", 1, "b"),
        ("a", 1, "c"),
    ]
    assert json.loads((tmp_path / "mini.json").read_text())["schema_version"] == 2


def merge_often(folder: Path, row: str) -> None:
    for seed in range(20):
        Record("mini", folder).merge([entry(row, seed)])


def test_no_launcher_loses_what_another_one_wrote(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=merge_often, args=(tmp_path, row)) for row in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert len(Record("mini", tmp_path).read()) == 40


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"jobs": []}',
        '{"schema_version": 2, "jobs": [{"row": "a"}]}',
        json.dumps({"schema_version": 2, "jobs": [entry("a", status="lost")._asdict()]}),
    ],
)
def test_a_damaged_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "mini.json").write_text(text)
    with pytest.raises(ValueError, match=r"mini.json is damaged .*: remove it; the runs are kept"):
        Record("mini", tmp_path).read()


def test_a_record_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "mini.json").write_text('{"schema_version": 1, "jobs": {}}')
    with pytest.raises(ValueError, match="has schema version 1, this program reads 2: remove it"):
        Record("mini", tmp_path).read()


def test_no_sweep_has_the_name_of_the_recordings(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is the name of a folder beside the tables"):
        Record("recordings", tmp_path)


def test_a_run_outside_of_outputs_lies_beside_the_results() -> None:
    run = entry("a")._replace(run_dir="elsewhere/a")
    assert run.folder(Path("/there/results")) == Path("/there/elsewhere/a")


def test_runs_of_another_config_stay_unless_they_are_superseded(tmp_path: Path) -> None:
    record = Record("toy", tmp_path)
    first, second = entry("a", config="aaaa"), entry("a", config="bbbb")
    record.merge([first])
    record.merge([second])
    assert record.read() == [first, second]
    record.merge([second], supersede=True)
    assert record.read() == [second]
