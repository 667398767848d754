"""A table's runs: those that start from others, and a table that is taken for one run."""

import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
from omegaconf import OmegaConf

from hornn.result import write_result
from hornn.run.identity import CONFIG, Identity
from hornn.sweep.expand import (
    check_folder,
    check_not_a_table,
    check_start,
    compose_job,
    compose_jobs,
    name_beside,
)
from hornn.sweep.job import Job
from hornn.sweep.record import Entry
from hornn.sweep.table_rows import picked

DONE = {"status": "completed", "valid_ppl": 90.0, "test_ppl": 80.0}


@pytest.mark.parametrize("result", [None, {"status": "diverged"}, DONE])
def test_a_start_that_is_not_done(tmp_path: Path, result: dict[str, Any] | None) -> None:
    identity = Identity({}, {}, {}, "aaaaaaaaaa", 1, tmp_path / "deep", False)
    job = Job(["deep"], [], identity, {"init_from": str(tmp_path / "best.ckpt")})
    if result:
        write_result(tmp_path, result)
    if result == DONE:
        check_start(job, {str(tmp_path): "done"})
        with pytest.raises(
            ValueError, match=r"which is not done: launch it then, by hydra.sweeper.only=\[deep\]"
        ):
            check_start(job, {str(tmp_path): "running"})  # it is just being overwritten
        return
    with pytest.raises(ValueError, match=f"deep starts from the run in {tmp_path}, which is not done"):
        check_start(job, {})


def test_a_table_without_what_tells_its_runs_apart_is_no_run() -> None:
    def check(rows: list[Any], *words: str) -> None:
        of_hydra = [word for word in words if word.startswith("hydra")]
        task = [word for word in words if word not in of_hydra]
        overrides = {"task": ["sweeps=mine", "seed=2", *task], "hydra": of_hydra}
        settings = {"overrides": overrides, "runtime": {"choices": {"sweeps": "mine"}}}
        check_not_a_table(OmegaConf.create({"rows": rows}), OmegaConf.create(settings))

    rows = [{"name": "wide", "run": ["model=rnn", "model.hidden_size=9"]}, {"name": "quoted", "run": None}]
    with pytest.raises(
        ValueError, match=r"^sweeps=mine is a table of 1 runs: .* model=rnn model.hidden_size=9$"
    ):
        check(rows, "logger=csv")
    check(rows, "model=rnn", "model.hidden_size=9")
    check(rows, "model.hidden_size=8")
    check([*rows, {"name": "base", "run": []}])
    check([])
    check([], "sweep.name=mine", "+sweep.row='wide'")  # a job's own words
    for word in ("sweep.seeds=[3]", "+sweep.sedes=[3]"):
        with pytest.raises(ValueError, match=r"^\+?sweep.se.*=\[3\] is of several runs: add -m to run them$"):
            check(rows, "model.hidden_size=8", word)
    for word in ("hydra.sweeper.only=[wide]", "hydra.launcher.jobs=2", "hydra/launcher=joblib"):
        with pytest.raises(ValueError, match=f"^{re.escape(word)} is of several runs: add -m to run them$"):
            check([], word)


@pytest.mark.parametrize(
    "table",
    [
        {"rows": {"a": 1}},
        {"rows": "abc"},
        {"rows": [1]},
        {"rows": [{"run": "model=rnn"}]},
        {"rows": [{"run": 3}]},
        {"grid": {"model": []}},
        {"grid": {"model": 2}},
        {"grid": {"cell": {"a": None}}},
        {"grid": ["model"]},
    ],
)
def test_a_damaged_table_is_no_run(table: dict[str, Any]) -> None:
    overrides = {"task": ["sweeps=mine"], "hydra": []}
    settings = OmegaConf.create({"overrides": overrides, "runtime": {"choices": {}}})
    with pytest.raises(ValueError, match=r"^sweep 'mine' is a table: add -m to run it$"):
        check_not_a_table(OmegaConf.create({"name": "mine", **table}), settings)


def test_rows_are_picked_by_their_names_as_they_are_written() -> None:
    runs = {"2": ["model=rnn"], "deep": ["model=dt_rnn"]}
    assert picked(runs, [2, "2"]) == ["2"]
    with pytest.raises(ValueError, match="no row '3' to run; the table has: 2, deep"):
        picked(runs, [3])


def test_later_commands_with_the_name_of_a_sweep_add_their_jobs() -> None:
    """Whatever their own words call the rows; a run that is there keeps its row, and so do the same words."""
    held: list[Entry] = []

    def launch(name: str, row: str, *words: str, seed: int = 1) -> str:
        identity = Identity({}, {}, {}, name, seed, Path(name, f"seed={seed}"), False)
        job = Job([row], ["--config-dir=/a", *words, "sweep.name=mine", f"seed={seed}"], identity, {})
        name_beside([job], held)
        held.extend(job.entries())
        return job.label

    wide, wider = "model.hidden_size=50", "model.hidden_size=100"
    assert launch("aaaaaaaaaa", "model=rnn", "model=rnn", wide) == "model=rnn"
    assert launch("bbbbbbbbbb", "model=rnn", "model=rnn", wider) == f"model=rnn {wider}"
    assert launch("bbbbbbbbbb", "rnn", wider, "model=rnn", seed=2) == f"model=rnn {wider}"
    assert launch("aaaaaaaaaa", "model=rnn", "model=rnn", wide, "overwrite=true") == "model=rnn"
    assert launch("cccccccccc", "model=rnn", "model=rnn") == "model=rnn cccccccccc"
    assert launch("dddddddddd", "model=rnn", "model=rnn", wide) == "model=rnn"  # of a text that has changed


def test_jobs_that_differ_in_their_seed_alone_are_composed_once() -> None:
    asked: list[list[str]] = []

    class Loader:
        jobs: ClassVar[dict[Any, Any]] = {}

        def load_sweep_config(self, _: Any, words: list[str]) -> Any:
            asked.append(words)
            return OmegaConf.create({"seed": 5, "folder": "seed=${seed}", "hydra": {"runtime": {}}})

    def folder(*words: str) -> str:
        return str(compose_job(Loader(), OmegaConf.create(), words)[0].folder)

    assert folder("model=rnn", "seed=1", "+sweep.row='a'") == "seed=1"
    assert folder("model=rnn", "seed=12", "+sweep.row='b'") == "seed=12"
    assert asked == [["model=rnn", "seed=1"]]
    assert folder("model=rnn") == "seed=5", "of which no seed was said"
    assert folder("model=lstm", "seed=1") == "seed=1"
    assert folder("model=lstm", "seed=${n}") == folder("model=lstm", "seed=1", "seed=2") == "seed=5"
    assert len(asked) == 5


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every job is a run of one folder, but for its seed, and is overwritten where its overrides say so."""

    def compose(loader: Any, master: Any, words: list[str]) -> tuple[Identity, dict[str, Any]]:
        seed = next(
            (int(word.rpartition("=")[2]) for word in words if word.lstrip("+").startswith("seed=")), 1
        )
        folder = Path("outputs", f"seed={seed}")
        config = {"overwrite": "overwrite=true" in words, "init_from": None}
        return Identity({"model": "rnn"}, {}, {}, "aaaaaaaaaa", seed, folder, False), config

    monkeypatch.setattr("hornn.sweep.expand.compose", compose)


@pytest.mark.usefixtures("composed")
def test_a_run_of_two_rows_is_overwritten_once_where_one_says_so() -> None:
    words = [["+sweep.row='a'"], ["+sweep.row='b'", "overwrite=true"]]
    for batch, place in ((words, 1), (words[::-1], 0)):
        (job,) = compose_jobs(None, OmegaConf.create(), batch)
        assert (job.overwrite, job.place) == (True, place)
        assert sorted(job.rows) == ["a", "b"]
    (job,) = compose_jobs(None, OmegaConf.create(), words[:1] * 2)
    assert (job.overwrite, job.rows) == (False, ["a"])


@pytest.mark.usefixtures("composed")
@pytest.mark.parametrize("sign", ["", "+", "++"])
def test_a_seed_is_no_part_of_a_row_s_name(sign: str) -> None:
    jobs = compose_jobs(None, OmegaConf.create(), [[f"{sign}seed={seed}", "logger=csv"] for seed in (1, 2)])
    assert [job.rows for job in jobs] == [["rnn"], ["rnn"]]


def test_a_folder_of_another_run_is_taken_only_where_it_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text("name: bbbbbbbbbb\nconfig: {}\n")
    identity = Identity({"model": "rnn"}, {}, {}, "aaaaaaaaaa", 1, tmp_path, False)
    job = Job(["deep"], [], identity, {})
    with pytest.raises(ValueError, match="holds another run than deep"):
        check_folder(job)
    job.overwrite = True
    check_folder(job)
