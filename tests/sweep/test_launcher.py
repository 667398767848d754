"""A multirun from its command line, over jobs that cost nothing."""

import errno
import fcntl
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import hornn.sweep.record
from sweep.mini import TABLE, Ended, is_alive, pid_of, recorded, starts, statuses, wait_for, write_table

Launch = Callable[..., Ended]
Start = Callable[..., subprocess.Popen[str]]
pytestmark = pytest.mark.slow
ONE_EPOCH = "trainer.max_epochs=1"


def test_rows_times_seeds_and_what_is_done_is_not_done_again(launch: Launch) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", ONE_EPOCH)
    code, out, err = launch(*table)
    assert (code, err) == (0, "")
    assert out.startswith("mini: 0 of 4 done, 4 queued\n")
    assert out.endswith("mini: 4 of 4 done\n")
    assert "second order seed=2: done in " in out
    assert ", test perplexity 82.00" in out
    record = recorded()
    assert list(record) == [("elman", 1), ("elman", 2), ("second order", 1), ("second order", 2)]
    entry = record["second order", 2]
    assert entry["run_dir"] == f"outputs/hornn/pydoc/{entry['config_hash']}/seed=2"
    overrides = ["--config-dir=", "sweeps=mini", ONE_EPOCH, "model=hornn", "model.order=2", "seed=2"]
    assert [word.partition(os.getcwd())[0] for word in entry["overrides"]] == overrides
    assert (entry["status"], entry["error"]) == ("done", None)
    assert all(len(lines) == 1 for lines in starts().values())
    assert starts()[entry["run_dir"]][0].startswith("epoch=1 HORNN_SWEEP=mini HORNN_ROW=second order ")

    code, out, err = launch(*table)
    assert (code, out, err) == (0, "mini: 4 of 4 done\n" * 2, "")
    assert all(len(lines) == 1 for lines in starts().values())


def test_a_row_that_starts_from_another_one_comes_after_it(launch: Launch) -> None:
    write_table(f"{TABLE}    - {{name: deep, run: [model=lstm], start: elman}}\n")
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

    assert launch(*picked, "hydra.launcher.retry_failed=true").code == 0
    record = recorded()
    assert list(record) == [("elman", 1), ("elman", 2), ("deep", 1), ("deep", 2)]
    for seed in (1, 2):
        deep, elman = record["deep", seed], record["elman", seed]
        assert f"init_from='{elman['run_dir']}/best.ckpt'" in deep["overrides"]
        assert deep["config_hash"] == record["deep", 1]["config_hash"]


def test_the_product_of_the_command_line(launch: Launch) -> None:
    assert launch("model=rnn,hornn", "model.hidden_size=4", "seed=1,2", ONE_EPOCH).code == 0
    (path,) = Path("outputs/sweeps").glob("*.json")
    assert path.stem.startswith("adhoc-")
    assert len(recorded(path.stem)) == len(starts()) == 4
    assert ("model=hornn", 2) in recorded(path.stem)

    assert launch("seed=2,3", ONE_EPOCH, "model=rnn,hornn", "model.hidden_size=4").code == 0
    assert list(Path("outputs/sweeps").glob("*.json")) == [path]
    assert len(recorded(path.stem)) == len(starts()) == 6
    assert all(len(lines) == 1 for lines in starts().values())


def test_some_rows_alone(launch: Launch) -> None:
    assert launch("sweeps=mini", "hydra.sweeper.only=[second order]", ONE_EPOCH).code == 0
    assert list(recorded()) == [("second order", 1)]
    code, out, _ = launch("sweeps=mini", ONE_EPOCH)
    assert (code, out.splitlines()[0]) == (0, "mini: 1 of 2 done, 1 queued")


def test_a_command_line_seed_replaces_those_of_the_table(launch: Launch) -> None:
    assert launch("sweeps=mini", "seed=3,4", ONE_EPOCH).code == 0
    assert [seed for _, seed in recorded()] == [3, 4, 3, 4]


def test_a_table_without_runs_yet(launch: Launch) -> None:
    write_table(TABLE.partition("    - {name: elman")[0] + "    - {name: told of, run: null}\n")
    assert launch("sweeps=mini")[::2] == (2, "error: sweep 'mini' has no row that can be run yet\n")


def test_rows_that_are_one_run_share_it(launch: Launch) -> None:
    write_table(TABLE + "    - {name: again, run: [model=rnn, seed=1]}\n")
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    record = recorded()
    assert record["elman", 1]["run_dir"] == record["again", 1]["run_dir"]
    assert len(starts()) == 2
    assert all(len(lines) == 1 for lines in starts().values())


def test_a_failure_is_shown_at_once_and_the_others_go_on(launch: Launch) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", ONE_EPOCH)
    code, out, err = launch(*table, FAKE_FAIL="1")
    assert code == 2
    assert err.startswith("error: 2 of 4 jobs failed: elman seed=1; second order seed=1. ")
    assert (
        "\nelman seed=1: failed: the corpus is on fire\n    epoch 1\n    error: the corpus is on fire\n"
        in out
    )
    assert out.index("elman seed=1: failed") < out.index("elman seed=2: running")
    assert statuses() == ["failed", "done", "failed", "done"]
    assert recorded()["elman", 1]["error"] == "the corpus is on fire"

    code, out, err = launch(*table)
    assert code == 2
    assert "elman seed=1: failed: the corpus is on fire" in out
    assert all(len(lines) == 1 for lines in starts().values())

    assert launch(*table, "hydra.launcher.retry_failed=true").code == 0
    assert statuses() == ["done"] * 4
    assert sorted(len(lines) for lines in starts().values()) == [1, 1, 2, 2]
    assert starts()[recorded()["elman", 1]["run_dir"]][1].startswith("epoch=2 "), "not continued"


@pytest.mark.parametrize("again", ["hydra.launcher.retry_failed=true", "overwrite=true"])
def test_a_diverged_run_is_replaced_when_retried(launch: Launch, again: str) -> None:
    assert launch("sweeps=mini", ONE_EPOCH, FAKE_DIVERGE="1").code == 2
    assert recorded()["elman", 1]["error"] == "the loss is infinite"
    assert launch("sweeps=mini", ONE_EPOCH).code == 2
    assert launch("sweeps=mini", ONE_EPOCH, again).code == 0
    assert [lines[1].split()[0] for lines in starts().values()] == ["epoch=1"] * 2


def test_stop_at_the_first_failure(launch: Launch) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", "trainer.max_epochs=100", "hydra.launcher.on_failure=stop")
    code, _, err = launch(*table, "hydra.launcher.jobs=2", FAKE_FAIL="1", FAKE_EPOCH="0.5")
    assert code == 2
    assert err.startswith("error: 1 of 4 jobs failed: elman seed=1. ")
    assert statuses() == ["failed", "queued", "queued", "queued"]
    assert len(starts()) <= 2


def test_a_job_killed_by_the_kernel(start: Start) -> None:
    launcher = start("sweeps=mini", "trainer.max_epochs=3", FAKE_EPOCH="0.4")
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    os.kill(pid_of("elman"), signal.SIGKILL)
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 2
    assert "elman seed=1: failed: killed (signal 9): out of memory? outputs/rnn/pydoc/" in out
    assert "1 of 2 jobs failed: elman seed=1" in err
    assert statuses() == ["failed", "done"]

    launcher = start("sweeps=mini", "trainer.max_epochs=3", "hydra.launcher.retry_failed=true")
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out
    assert starts()[recorded()["elman", 1]["run_dir"]][1].split()[0] in ("epoch=2", "epoch=3")


def test_jobs_end_with_a_killed_launcher_and_continue_with_the_next(start: Start) -> None:
    table = ("sweeps=mini", "trainer.max_epochs=4", "hydra.launcher.jobs=2")
    launcher = start(*table, FAKE_EPOCH="1")
    wait_for(lambda: len(list(Path("outputs").rglob("metrics.csv"))) == 2)
    jobs = [pid_of("elman"), pid_of("second order")]
    launcher.kill()
    wait_for(lambda: not any(map(is_alive, jobs)), 10)
    assert statuses() == ["running"] * 2
    assert not any(Path("outputs").rglob("result.json"))
    assert "the launcher is gone" in next(Path("outputs").rglob("train.log")).read_text()

    launcher = start(*table)
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out
    assert statuses() == ["done"] * 2
    for lines in starts().values():
        assert lines[0].startswith("epoch=1 ")
        assert lines[1].split()[0] in ("epoch=2", "epoch=3")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_sweep_can_be_continued(start: Start, number: signal.Signals, code: int) -> None:
    launcher = start("sweeps=mini", "trainer.max_epochs=50", FAKE_EPOCH="0.5")
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    job = pid_of("elman")
    launcher.send_signal(number)
    out, _ = launcher.communicate(timeout=20)
    assert launcher.returncode == code
    assert not is_alive(job)
    assert statuses() == ["queued"] * 2
    assert out.endswith("mini: 0 of 2 done, 2 queued\n")


def test_a_second_interrupt_kills(start: Start) -> None:
    launcher = start("sweeps=mini", "trainer.max_epochs=50", FAKE_EPOCH="0.5", FAKE_DEAF="1")
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    job = pid_of("elman")
    launcher.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        launcher.wait(1)
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=20)
    assert launcher.returncode == 130
    assert not is_alive(job)
    assert statuses() == ["queued"] * 2


def test_the_same_sweep_twice_at_once_does_no_work_twice(start: Start) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", "trainer.max_epochs=2")
    launchers = [start(*table, FAKE_EPOCH="0.3"), start(*table, FAKE_EPOCH="0.3")]
    outs = [launcher.communicate(timeout=60)[0] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], outs
    assert all(out.endswith("mini: 4 of 4 done\n") for out in outs)
    assert all(len(lines) == 1 for lines in starts().values())
    assert sum(out.count(": elsewhere") for out in outs) > 0
    assert statuses() == ["done"] * 4


def test_a_run_that_somebody_started_by_hand_is_waited_for(start: Start, launch: Launch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH, "overwrite=true", FAKE_FAIL="1").code == 2
    run_dir = Path(recorded()["elman", 1]["run_dir"])
    with (run_dir / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        launcher = start("sweeps=mini", ONE_EPOCH, "hydra.launcher.retry_failed=true")
        wait_for(lambda: statuses() == ["running", "done"])
        assert launcher.poll() is None
        assert len(starts()[str(run_dir)]) == 1
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out
    assert "elman seed=1: elsewhere" in out
    assert statuses() == ["done"] * 2


def test_a_job_that_finds_its_run_taken_is_waited_for(start: Start) -> None:
    launcher = start("sweeps=mini", ONE_EPOCH, FAKE_GATE="1")
    wait_for(lambda: Path("outputs/sweeps/mini.json").exists() and statuses() == ["running", "queued"])
    with Path(recorded()["elman", 1]["run_dir"], ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path("gate").touch()
        wait_for(lambda: statuses() == ["running", "done"])
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out
    changes = [line.rpartition(": ")[2] for line in out.splitlines() if line.startswith("elman")]
    assert [change.partition(";")[0] for change in changes[:3]] == ["running", "elsewhere", "running"]
    assert statuses() == ["done"] * 2


def test_gpus_are_shared_out(launch: Launch) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", ONE_EPOCH, "trainer=gpu", "hydra.launcher.jobs=4")
    assert launch(*table, CUDA_VISIBLE_DEVICES="3,5", FAKE_EPOCH="1").code == 0
    given = [lines[0].partition("CUDA_VISIBLE_DEVICES=")[2] for lines in starts().values()]
    assert sorted(given) == ["3", "3", "5", "5"]
    code, _, err = launch("sweeps=mini", "trainer=gpu", "hydra.launcher.gpus=[]")
    assert code == 2
    assert (
        "trainer.accelerator=gpu trainer.devices=1 needs 1 GPU(s), the launcher has 0 (none): use trainer=cpu"
        in err
    )


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


def test_a_damaged_record_is_refused_and_kept(launch: Launch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    path = Path("outputs/sweeps/mini.json")
    path.write_text(half := path.read_text()[:200])
    code, _, err = launch("sweeps=mini", ONE_EPOCH)
    assert code == 2
    assert err.startswith("error: outputs/sweeps/mini.json is damaged (")
    assert "remove it; the runs are kept in their folders" in err
    assert err.count("\n") == 1
    assert path.read_text() == half
    path.unlink()
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    assert statuses() == ["done"] * 2
    assert all(len(lines) == 1 for lines in starts().values())


def test_a_damaged_result_is_that_jobs_failure(launch: Launch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    result = Path(recorded()["elman", 1]["run_dir"], "result.json")
    result.write_text(result.read_text()[:40])
    code, out, _ = launch("sweeps=mini", ONE_EPOCH)
    assert code == 2
    assert f"elman seed=1: failed: {result} is damaged (" in out
    assert statuses() == ["failed", "done"]


def test_a_full_disk_under_the_record(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    before = recorded()
    original, written = hornn.sweep.record.write_atomically, []

    def fill(path: Path, text: str) -> None:
        written.append(path)
        if len(written) == 3:  # the job is at work by then
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(path, text)

    monkeypatch.setattr(hornn.sweep.record, "write_atomically", fill)
    code, _, err = launch("sweeps=mini", "sweep.seeds=[7,8]", ONE_EPOCH)
    assert code == 2
    assert err.startswith(
        "error: outputs/sweeps/mini.json: No space left on device; free some space on that disk"
    )
    assert recorded().items() >= before.items()
    monkeypatch.undo()


def test_a_full_disk_under_the_log(launch: Launch) -> None:
    code, out, _ = launch("sweeps=mini", "sweep.seeds=[1,2]", ONE_EPOCH, FAKE_FULL="2")
    assert code == 2
    log = Path(recorded()["elman", 2]["run_dir"], "train.log")
    assert f"elman seed=2: failed: exit code 1 and nothing in {log}: is the disk full?" in out
    assert statuses() == ["done", "failed"] * 2


def test_another_run_with_the_same_hash(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hornn.identity.config_hash", lambda config: "0123456789")
    code, _, err = launch("model=rnn", "model.hidden_size=4,5", ONE_EPOCH)
    assert code == 2
    assert (
        "model.hidden_size=4 and model.hidden_size=5 would both write to outputs/rnn/pydoc/0123456789/seed=1,"
        " but their configs differ in model.hidden_size: give them folders by run_dir=FOLDER" in err
    )
    assert not starts()


def test_another_run_in_the_folder(launch: Launch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    config = Path(recorded()["elman", 1]["run_dir"], "config.yaml")
    config.write_text(config.read_text().replace("  lr: ", "  lr: 1"))
    code, _, err = launch("sweeps=mini", ONE_EPOCH)
    assert code == 2
    assert "holds another run than that of elman, but their configs differ in optimizer.lr" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hydra.launcher.jbos=2"], "unknown key 'hydra.launcher.jbos'; did you mean 'hydra.launcher.jobs'?"),
        (["hydra.launcher.jobs=0"], "hydra.launcher.jobs must be a whole number, 1 or more, got 0"),
        (
            ["hydra.launcher.on_failure=panic"],
            "hydra.launcher.on_failure must be continue or stop, got 'panic'",
        ),
        (["hydra.launcher.retry_failed=1"], "hydra.launcher.retry_failed must be true or false, got 1"),
        (["hydra.launcher.gpus=all"], "hydra.launcher.gpus must be auto or a list such as [0,1], got 'all'"),
        (["hydra/launcher=proces"], "unknown hydra/launcher 'proces'; did you mean 'process'?"),
        (["sweeps=mini", "model=lstm"], "row 'elman' of sweep 'mini' sets model itself"),
        (
            ["sweeps=mini", "sweep.seeds=1"],
            "sweep.seeds must be a list of whole numbers such as [1,2,3], got 1",
        ),
        (
            ["sweeps=mini", "hydra.sweeper.only=elman"],
            "hydra.sweeper.only must be a list of rows such as [elman], got 'elman'",
        ),
        (
            ["sweeps=mini", "hydra.sweeper.only=[elmann]"],
            "hydra.sweeper.only: no row 'elmann' to run; the table has: elman, second order",
        ),
        (
            ["hydra.sweeper.only=[elman]"],
            "hydra.sweeper.only=['elman'] picks rows of a table: give one by sweeps=NAME",
        ),
        (
            ["sweeps=mini", "sweep.name=a/b"],
            "sweep.name must be letters, digits, '.', '_' and '-', got 'a/b'",
        ),
        (
            ["model=rnn", "seed=1,2", "run_dir=here"],
            "seeds 1 and 2 of rnn would both write to here: leave out run_dir",
        ),
        (["seed=interval(1,2)"], "seed=interval(1,2) is no list of values: write seed=VALUE,VALUE"),
    ],
)
def test_bad_input_is_one_line(launch: Launch, words: list[str], message: str) -> None:
    code, _, err = launch(*words)
    assert code == 2
    assert err.count("\n") == 1
    assert message in err
    assert not starts()


def test_the_command_line_cannot_say_what_rows_start_from(launch: Launch) -> None:
    write_table(f"{TABLE}    - {{name: deep, run: [model=lstm], start: elman}}\n")
    code, _, err = launch("sweeps=mini", "init_from=some.ckpt")
    assert code == 2
    assert err.startswith(
        "error: row 'deep' of sweep 'mini' sets init_from itself: the command line cannot set it"
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{name: elman, run: [model=rnn]}", "row 'elman' of sweep 'mini': each row has a name of its own"),
        ("{run: [model=rnn]}", "row 'None' of sweep 'mini': each row has a name of its own"),
        ("{name: x}", "row 'x' of sweep 'mini' has no list 'run'"),
        ("{name: x, run: model=rnn}", "row 'x' of sweep 'mini' has no list 'run'"),
        ("{name: x, run: ['model=rnn,lstm']}", "row 'x' of sweep 'mini': model=rnn,lstm is several runs"),
        (
            "{name: x, run: [model=rnn], start: told of}",
            "row 'x' of sweep 'mini' starts from 'told of': give a row with a run that starts from no other",
        ),
        ("{name: x, run: [model=rnn], start: x}", "row 'x' of sweep 'mini' starts from 'x': give a row"),
        ("{name: x, run: [model=rn]}", "unknown model 'rn'; did you mean 'srn'?"),
    ],
)
def test_a_bad_row_is_one_line(launch: Launch, row: str, message: str) -> None:
    write_table(f"{TABLE}    - {row}\n")
    code, _, err = launch("sweeps=mini")
    assert code == 2
    assert err.count("\n") == 1
    assert message in err
    assert not starts()
