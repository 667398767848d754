"""Multiruns of runs that cost nothing under a launcher of Hydra's own: what is run again, and what counts as done."""

import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from hornn.result import write_result
from hornn.run.identity import Identity
from hornn.sweep.job import Job
from hornn.sweep.onlooker import Onlooker
from hornn.sweep.record import Record
from outcome import Outcome
from sweep.mini import FAKE, TABLE, Launch, recorded, starts, statuses, wait_for, write_table

pytestmark = pytest.mark.slow
ONE_EPOCH = "trainer.max_epochs=1"


@pytest.fixture
def launch(
    folder: None, command: Callable[..., Outcome], quick_jobs: None, monkeypatch: pytest.MonkeyPatch
) -> Launch:
    """`launch("key=value", ..., FAKE_FAIL="1")`: such a multirun, here and now."""
    monkeypatch.setattr("hornn.commands.train.script_of", lambda path: FAKE)

    def run(*overrides: str, **environment: str) -> Outcome:
        with monkeypatch.context() as context:
            for key, value in environment.items():
                context.setenv(key, value)
            words = ("-m", "--config-dir=conf", "hydra/launcher=basic", "sweeps=mini", ONE_EPOCH)
            return command("train", *words, *overrides)

    return run


def counts() -> dict[tuple[str, int], int]:
    """How often the run of each row and seed was started."""
    return {run: len(starts().get(entry.run_dir, ())) for run, entry in recorded().items()}


@pytest.mark.thorough
def test_a_diverged_run_is_tried_again_without_those_that_are_done(launch: Launch) -> None:
    assert launch().code == 0
    table = ("sweep.seeds=[1,2]",)
    code, _, err = launch(*table, FAKE_DIVERGE="2")
    assert code == 2
    assert err == (
        "error: 2 of 4 jobs failed: elman seed=2; second-order seed=2. "
        "Once the cause is mended, the same command tries them again, with hydra.sweeper.retry_failed=true also those "
        "that diverged\n"
    )
    code, out, again = launch(*table)
    assert (code, again) == (2, err)
    assert "elman seed=2: failed: the loss is infinite\n" in out
    assert launch(*table, "hydra.sweeper.retry_failed=true").code == 0
    assert statuses() == ["done"] * 4
    assert counts() == {(row, seed): seed for row in ("elman", "second-order") for seed in (1, 2)}


@pytest.mark.thorough
def test_the_record_keeps_all_runs_of_a_row(launch: Launch) -> None:
    code, out, _ = launch("model.hidden_size=4,5")
    assert (code, out.splitlines()[-1]) == (0, "mini: 4 of 4 done")
    assert [(entry.row, entry.status) for entry in Record("mini").read()] == [
        *[("elman", "done")] * 2,
        *[("second-order", "done")] * 2,
    ]


@pytest.mark.thorough
def test_an_old_result_is_no_outcome_of_a_run_that_was_to_be_overwritten(launch: Launch) -> None:
    assert launch().code == 0
    code, out, err = launch("overwrite=true", FAKE_REFUSE="hornn")
    assert (code, err.partition(". ")[0]) == (2, "error: 1 of 2 jobs failed: second-order seed=1")
    assert "second-order seed=1: failed: there is no such machine\n" in out
    assert statuses() == ["done", "failed"]
    assert counts() == {("elman", 1): 2, ("second-order", 1): 1}


@pytest.mark.thorough
def test_a_job_that_slurm_starts_again_overwrites_what_was_there_before_the_launch(launch: Launch) -> None:
    for _ in range(2):
        assert launch("overwrite=true", SLURM_RESTART_COUNT="1").code == 0
    assert counts() == {("elman", 1): 2, ("second-order", 1): 2}
    assert all(line.startswith("epoch=1 ") for lines in starts().values() for line in lines)


def test_who_looks_on_survives_a_file_that_is_damaged_for_a_moment(
    folder: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says at the end what stays so."""
    monkeypatch.setattr("hornn.sweep.onlooker.LOOK", 0.01)
    identity = Identity({}, {}, {}, "aaaaaaaaaa", 1, Path("outputs/one"), False)
    job = Job(["one"], [], identity, {"trainer": {}})
    record = Record("mini")
    record.merge(job.entries())
    whole = record.path.read_text()
    console = Console(file=io.StringIO())
    with Onlooker(record, [job], console, False) as onlooker:
        record.path.write_text("{")
        time.sleep(0.2)
        record.path.write_text(whole)
        job.run_dir.mkdir(parents=True)
        write_result(
            job.run_dir,
            {"status": "completed", "name": job.name, "seed": 1, "valid_ppl": 9.0, "test_ppl": 8.0},
        )
        wait_for(lambda: job.status == "done")
        assert onlooker.thread.is_alive()
    with pytest.raises(ValueError, match=r"mini\.json is damaged"), Onlooker(record, [job], console, False):
        record.path.write_text("{")


def test_a_job_whose_start_has_meanwhile_succeeded_is_launched(folder: None) -> None:
    first, deep = (
        Job([row], [], Identity({}, {}, {}, name, 1, Path("outputs", row), False), {"overwrite": False})
        for row, name in (("first", "aaaaaaaaaa"), ("deep", "bbbbbbbbbb"))
    )
    deep.after = [first]
    record = Record("mini")
    deep.status, deep.error = "failed", "first, again, which it starts from, failed"
    record.merge([*first.entries(), *deep.entries()])
    first.run_dir.mkdir(parents=True)
    scores = {"valid_ppl": 9.0, "test_ppl": 8.0}
    write_result(first.run_dir, {"status": "completed", "name": first.name, "seed": 1, **scores})
    for wave in ([first], [deep]):
        with Onlooker(record, wave, Console(file=io.StringIO()), False) as onlooker:
            pass
    assert (first.status, first.error) == ("done", None)
    assert onlooker.open_jobs == [deep]


@pytest.mark.thorough
def test_a_finished_run_of_other_code_is_skipped_aloud(launch: Launch) -> None:
    assert launch().code == 0
    path = next(Path("outputs").rglob("rnn/**/result.json"))
    result = json.loads(path.read_text())
    path.write_text(json.dumps({**result, "code": {**result["code"], "source": "0123456789abcdef"}}))
    code, out, _ = launch()
    assert code == 0
    assert "warning: finished runs of other code are skipped (the source of hornn.cells.elman.Rnn was " in out
    assert ": elman seed=1; overwrite=true trains them anew\n" in out


DEEPER = """    - {name: deeper, label: deeper, run: [model=rnn, trainer.max_steps=9], start: elman}
    - {name: third, label: third, run: [model=hornn, model.order=3, trainer.max_steps=9], start: second-order}
"""


def test_a_failed_row_holds_up_those_alone_that_start_from_it(launch: Launch) -> None:
    write_table(TABLE + DEEPER)
    code, out, err = launch(FAKE_REFUSE="hornn")
    assert code == 2
    assert err.startswith("error: 2 of 4 jobs failed: second-order seed=1; third seed=1. ")
    assert "third seed=1: failed: second-order, which it starts from, failed\n" in out
    assert {row: entry.status for (row, _), entry in recorded().items()} == {
        "elman": "done",
        "second-order": "failed",
        "deeper": "done",
        "third": "failed",
    }


@pytest.mark.thorough
def test_runs_that_were_cut_off_are_named(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    """No launcher of Hydra's tells of a run whose own time was over, or that somebody has ended."""
    write_table(TABLE + DEEPER)
    monkeypatch.setattr("hornn.sweep.workers.CUT_OFF", (2,))  # as if the refusal were such an end
    code, _, err = launch(FAKE_REFUSE="rnn")
    assert (code, err) == (
        124,
        "error: 2 of 4 jobs were cut off: elman seed=1; deeper seed=1. The same command continues them\n",
    )
    assert statuses() == ["queued", "done", "queued", "done"]
