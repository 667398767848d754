"""A multirun from its command line, over jobs that cost nothing."""

import json
import os
import re
import time
from pathlib import Path

import pytest

from sweep.mini import TABLE, Launch, recorded, starts, statuses, write_table

pytestmark = pytest.mark.slow
ONE_EPOCH = "trainer.max_epochs=1"


def test_rows_times_seeds_and_what_is_done_is_not_done_again(launch: Launch) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", ONE_EPOCH)
    code, out, err = launch(*table)
    assert (code, err) == (0, "")
    assert out.startswith("mini: 0 of 4 done, 4 queued\n")
    assert out.endswith("mini: 4 of 4 done\n")
    assert "second-order seed=2: done in " in out
    assert ", test 82.00" in out
    record = recorded()
    assert list(record) == [("elman", 1), ("elman", 2), ("second-order", 1), ("second-order", 2)]
    entry = record["second-order", 2]
    assert entry.run_dir == f"outputs/hornn/pydoc/{entry.name}/seed=2"
    overrides = ["--config-dir=", "sweeps=mini", ONE_EPOCH, "model=hornn", "model.order=2", "seed=2"]
    assert [word.partition(os.getcwd())[0] for word in entry.overrides] == overrides
    assert (entry.status, entry.error) == ("done", None)
    assert all(len(lines) == 1 for lines in starts().values())
    assert starts()[entry.run_dir][0].startswith("epoch=1 HORNN_SWEEP=mini HORNN_ROW=second-order ")

    code, out, err = launch(*table)
    assert (code, out, err) == (0, "mini: 4 of 4 done\n" * 2, "")
    assert all(len(lines) == 1 for lines in starts().values())


@pytest.mark.thorough
def test_a_row_with_seeds_of_its_own_has_those_unless_the_command_line_gives_others(launch: Launch) -> None:
    write_table(f"{TABLE}    - {{name: counts, label: counts, run: [model=lstm], seeds: [3]}}\n")
    table = ("sweeps=mini", "hydra.sweeper.only=[counts,elman]", ONE_EPOCH)
    assert launch(*table).code == 0
    assert list(recorded()) == [("counts", 3), ("elman", 1)]
    assert launch(*table, "sweep.seeds=[4]").code == 0
    assert list(recorded()) == [("counts", 3), ("elman", 1), ("counts", 4), ("elman", 4)]
    for seeds in ("++sweep.seeds=[5]", "sweep={seeds: [5]}"):
        assert launch(*table, seeds).code == 0
        assert list(recorded())[4:] == [("counts", 5), ("elman", 5)]


def test_a_row_that_starts_from_another_one_comes_after_it(launch: Launch) -> None:
    write_table(f"{TABLE}    - {{name: deep, label: deep, run: [model=lstm], start: elman}}\n")
    picked = (
        "sweeps=mini",
        "sweep.seeds=[1,2]",
        "hydra.sweeper.only=[deep]",
        "hydra.launcher.jobs=4",
        ONE_EPOCH,
    )
    code, out, err = launch(*picked, FAKE_FAIL="1")
    assert code == 2
    assert err.startswith("error: 2 of 4 jobs failed: elman seed=1; deep seed=1. ")
    assert "\ndeep seed=1: failed: elman, which it starts from, failed\n" in out
    assert out.index("elman seed=2: done") < out.index("deep seed=2: running")
    assert out.index("deep seed=2: done")

    assert launch(*picked, "hydra.sweeper.retry_failed=true").code == 0
    record = recorded()
    assert list(record) == [("elman", 1), ("elman", 2), ("deep", 1), ("deep", 2)]
    for seed in (1, 2):
        deep, elman = record["deep", seed], record["elman", seed]
        assert f"init_from='{elman.run_dir}/best.ckpt'" in deep.overrides
        assert deep.name == record["deep", 1].name


@pytest.mark.thorough
def test_a_row_whose_start_has_meanwhile_succeeded_runs(launch: Launch) -> None:
    write_table(f"{TABLE}    - {{name: deep, label: deep, run: [model=lstm], start: elman}}\n")
    table = ("sweeps=mini", "hydra.sweeper.only=[deep]", ONE_EPOCH)
    assert launch(*table, FAKE_FAIL="1").code == 2
    assert recorded()["deep", 1].error == "elman, which it starts from, failed"
    mended = ("sweeps=mini", "hydra.sweeper.only=[elman]", "hydra.sweeper.retry_failed=true", ONE_EPOCH)
    assert launch(*mended).code == 0
    assert launch(*table).code == 0
    assert recorded()["deep", 1].status == "done"


def test_a_key_that_a_row_does_not_take_is_refused_before_any_row_is_trained(launch: Launch) -> None:
    write_table(
        f"{TABLE}    - {{name: both, label: both, run: [model=mixture], start: [elman, second-order]}}\n"
    )
    code, out, err = launch("sweeps=mini")
    assert (code, out) == (2, "")
    assert "unknown key 'model.hidden_size'" in err
    assert "model=mixture takes: lengths (in the job" in err
    assert not Path("outputs/sweeps").exists()


def test_a_row_that_mixes_others_comes_after_all_of_them(launch: Launch) -> None:
    write_table(
        f"{TABLE}    - {{name: both, label: both, run: [model=mixture, ~model.hidden_size], "
        "start: [elman, second-order]}\n"
    )
    picked = ("sweeps=mini", "hydra.sweeper.only=[both]", "hydra.launcher.jobs=4")
    code, out, err = launch(*picked, FAKE_FAIL="1")
    assert code == 2
    assert re.search("\nboth seed=1: failed: (elman|second-order), which it starts from, failed\n", out)

    code, out, err = launch(*picked, "hydra.sweeper.retry_failed=true")
    assert (code, err) == (0, "")
    assert max(out.index(f"{row} seed=1: done") for row in ("elman", "second-order")) < out.index(
        "both seed=1: running"
    )
    record = recorded()
    assert list(record) == [("elman", 1), ("second-order", 1), ("both", 1)]
    paths = ",".join(f"'{record[row, 1].run_dir}/best.ckpt'" for row in ("elman", "second-order"))
    assert f"init_from=[{paths}]" in record["both", 1].overrides


@pytest.mark.thorough
def test_rows_that_only_come_along_are_not_overwritten(launch: Launch) -> None:
    write_table(
        f"{TABLE}    - {{name: both, label: both, run: [model=mixture, ~model.hidden_size], "
        "start: [elman, second-order]}\n"
    )
    picked = ("sweeps=mini", "hydra.sweeper.only=[both]", "overwrite=true")
    for _ in range(2):  # the first time they have no result yet
        assert launch(*picked).code == 0
    record = recorded()
    counts = {row: len(starts()[entry.run_dir]) for (row, _), entry in record.items()}
    assert counts == {"elman": 1, "second-order": 1, "both": 2}
    assert launch("sweeps=mini", "hydra.sweeper.only=[both,elman]", "overwrite=true").code == 0
    assert len(starts()[record["elman", 1].run_dir]) == 2, "it is picked, too"


def test_the_product_of_the_command_line(launch: Launch) -> None:
    assert launch("model=rnn,hornn", "model.hidden_size=4", "seed=1", ONE_EPOCH).code == 0
    (path,) = Path("outputs/sweeps").glob("*.json")
    assert path.stem.startswith("adhoc-")
    assert len(recorded(path.stem)) == len(starts()) == 2

    assert launch("seed=1,2", ONE_EPOCH, "model=rnn,hornn", "model.hidden_size=4").code == 0
    assert list(Path("outputs/sweeps").glob("*.json")) == [path]
    assert len(recorded(path.stem)) == len(starts()) == 4
    assert ("model=hornn", 2) in recorded(path.stem)
    assert launch("++seed=1,2", ONE_EPOCH, "model=rnn,hornn", "model.hidden_size=4").code == 0
    assert len(recorded(path.stem)) == len(starts()) == 4
    assert all(len(lines) == 1 for lines in starts().values())


def test_some_rows_alone(launch: Launch) -> None:
    assert launch("sweeps=mini", "hydra.sweeper.only=[second-order]", ONE_EPOCH).code == 0
    assert list(recorded()) == [("second-order", 1)]
    code, out, _ = launch("sweeps=mini", ONE_EPOCH)
    assert (code, out.splitlines()[0]) == (0, "mini: 1 of 2 done, 1 queued")


@pytest.mark.thorough
def test_a_command_line_seed_replaces_those_of_the_table(launch: Launch) -> None:
    assert launch("sweeps=mini", "seed=3,4", ONE_EPOCH).code == 0
    assert [seed for _, seed in recorded()] == [3, 4, 3, 4]


def test_a_table_without_runs_yet(launch: Launch) -> None:
    write_table(
        TABLE.partition("    - {name: elman")[0] + "    - {name: told-of, label: told-of, run: null}\n"
    )
    assert launch("sweeps=mini")[::2] == (2, "error: sweep 'mini' has no row that can be run yet\n")


@pytest.mark.thorough
def test_rows_that_are_one_run_share_it(launch: Launch) -> None:
    """By a key that changes no number."""
    assert launch("model=rnn", "trainer.profiler=null,simple", "sweep.name=mine", ONE_EPOCH).code == 0
    record = recorded("mine")
    assert {row for row, _ in record} == {"trainer.profiler=null", "trainer.profiler=simple"}
    assert len({entry.run_dir for entry in record.values()}) == 1
    assert [len(lines) for lines in starts().values()] == [1]


def test_a_failure_is_shown_at_once_and_the_others_go_on(launch: Launch) -> None:
    table = ("sweeps=mini", "hydra.sweeper.only=[elman]", "sweep.seeds=[1,2]", ONE_EPOCH)
    code, out, err = launch(*table, FAKE_FAIL="1")
    assert code == 2
    assert err.startswith("error: 1 of 2 jobs failed: elman seed=1. ")
    assert (
        "\nelman seed=1: failed: the corpus is on fire\n    epoch 1\n    error: the corpus is on fire\n"
        in out
    )
    assert out.index("elman seed=1: failed") < out.index("elman seed=2: running")
    assert statuses() == ["failed", "done"]
    assert recorded()["elman", 1].error == "the corpus is on fire"

    code, out, err = launch(*table)
    assert code == 2
    assert "elman seed=1: failed: the corpus is on fire" in out
    assert all(len(lines) == 1 for lines in starts().values())

    assert launch(*table, "hydra.sweeper.retry_failed=true").code == 0
    assert statuses() == ["done"] * 2
    assert sorted(len(lines) for lines in starts().values()) == [1, 2]
    assert starts()[recorded()["elman", 1].run_dir][1].startswith("epoch=2 "), "not continued"


@pytest.mark.thorough
@pytest.mark.parametrize("again", ["hydra.sweeper.retry_failed=true", "overwrite=true"])
def test_a_diverged_run_is_replaced_when_retried(launch: Launch, again: str) -> None:
    assert launch("sweeps=mini", ONE_EPOCH, FAKE_DIVERGE="1").code == 2
    assert recorded()["elman", 1].error == "the loss is infinite"
    assert launch("sweeps=mini", ONE_EPOCH).code == 2
    assert launch("sweeps=mini", ONE_EPOCH, again).code == 0
    assert [lines[1].split()[0] for lines in starts().values()] == ["epoch=1"] * 2


@pytest.mark.thorough
def test_stop_at_the_first_failure(launch: Launch) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", "trainer.max_epochs=100", "hydra.launcher.on_failure=stop")
    code, _, err = launch(*table, "hydra.launcher.jobs=2", FAKE_FAIL="1", FAKE_EPOCH="0.5")
    assert code == 2
    assert err.startswith("error: 1 of 4 jobs failed: elman seed=1. ")
    assert statuses() == ["failed", "queued", "queued", "queued"]
    assert len(starts()) <= 2


@pytest.mark.thorough
def test_gpus_are_shared_out(launch: Launch) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", ONE_EPOCH, "trainer=gpu", "hydra.launcher.jobs=4")
    assert launch(*table, CUDA_VISIBLE_DEVICES="3,5", FAKE_EPOCH="1").code == 0
    given = [lines[0].partition("HORNN_RUNS_ON_GPU=")[2] for lines in starts().values()]
    given = [each.partition(" FORCE_COLOR")[0] for each in given]
    assert sorted(given) == [f"1 CUDA_VISIBLE_DEVICES={gpu}" for gpu in (3, 3, 5, 5)]
    words = ("sweeps=mini", "overwrite=true", ONE_EPOCH, "hydra.launcher.gpus=[]")
    assert launch(*words, CUDA_VISIBLE_DEVICES="3,5").code == 0
    again = [lines[-1] for lines in starts().values() if len(lines) > 1]
    assert [line.count("HORNN_RUNS_ON_GPU=None CUDA_VISIBLE_DEVICES= ") for line in again] == [1] * 2, again
    code, _, err = launch("sweeps=mini", "trainer=gpu", "hydra.launcher.gpus=[]")
    assert code == 2
    assert (
        "trainer.accelerator=gpu trainer.devices=1 needs 1 GPU(s), the launcher has 0 (none): use trainer=cpu"
        in err
    )


def test_a_job_knows_how_many_share_its_gpu_and_takes_the_threads_that_a_user_gives(launch: Launch) -> None:
    words = (
        "sweeps=mini",
        ONE_EPOCH,
        "hydra.sweeper.only=[second-order]",
        "trainer=gpu",
        "hydra.launcher.per_gpu=2",
    )
    assert launch(*words, CUDA_VISIBLE_DEVICES="3", OMP_NUM_THREADS="5", FORCE_COLOR="1").code == 0
    ((line,),) = starts().values()
    (run,) = (each.name for each in recorded().values())
    assert line.endswith(
        f"OMP_NUM_THREADS=5 HORNN_RUNS_ON_GPU=2 CUDA_VISIBLE_DEVICES=3 FORCE_COLOR=None HORNN_RUN={run}"
    )


@pytest.mark.thorough
def test_processor_cores_are_shared_out(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hornn.sweep.launcher.cores", lambda: 7)
    assert launch("sweeps=mini", ONE_EPOCH, "hydra.launcher.jobs=2").code == 0
    assert launch("sweeps=mini", ONE_EPOCH, "overwrite=true").code == 0
    assert (
        launch("sweeps=mini", ONE_EPOCH, "overwrite=true", "hydra.launcher.jobs=2", OMP_NUM_THREADS="5").code
        == 0
    )
    for lines in starts().values():
        threads = [line.partition("OMP_NUM_THREADS=")[2].split()[0] for line in lines]
        assert threads == ["3", "None", "5"]


def test_a_finished_run_of_other_code_is_skipped_aloud(launch: Launch) -> None:
    table = ("sweeps=mini", "hydra.sweeper.only=[elman]", ONE_EPOCH)
    assert launch(*table).code == 0
    path = next(Path("outputs").rglob("rnn/**/result.json"))
    result = json.loads(path.read_text())
    result["code"]["source"] = "0123456789abcdef"
    path.write_text(json.dumps(result))
    code, out, err = launch(*table)
    assert (code, err) == (0, "")
    said = (
        "warning: finished runs of other code are skipped (the source of hornn.cells.elman.Rnn was 0123456789"
    )
    assert said in out
    assert ": elman seed=1; overwrite=true trains them anew\n" in out


def test_a_file_system_whose_clock_lags_hides_no_outcome(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or one whose clock is ahead, which would let an old result pass for a new one."""
    ours = time.time
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    for ahead in (3600, -3600):
        monkeypatch.setattr(time, "time", lambda ahead=ahead: ours() + ahead)
        done = launch("sweeps=mini", ONE_EPOCH, "overwrite=true")
        assert (done.code, done.err) == (0, "")
    assert {len(lines) for lines in starts().values()} == {3}


@pytest.mark.thorough
def test_a_job_that_says_nothing_did_not_say_what_one_before_it_said(launch: Launch) -> None:
    table = ("sweeps=mini", "hydra.sweeper.only=[elman]", "hydra.sweeper.retry_failed=true", ONE_EPOCH)
    assert launch(*table, FAKE_FAIL="1").code == 2
    assert "elman seed=1: failed: exit code 2 and nothing in" in launch(*table, FAKE_FULL="1").out


@pytest.mark.thorough
def test_a_job_has_taken_seconds(launch: Launch) -> None:
    out = launch("sweeps=mini", "hydra.sweeper.only=[elman]", ONE_EPOCH).out
    assert re.search(r"elman seed=1: done in 0:\d\d\b", out), out
