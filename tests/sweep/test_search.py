"""The search for constants: on runs that cost nothing, and on real ones."""

import csv
import json
import math
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hornn.sweep.run_state import claim, is_claimed
from outcome import Command
from sweep.searches import FAKE, journal
from words import settled

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def runs() -> dict[Path, dict[str, Any]]:
    """The folders in which a run was started, with its result where it has one."""
    folders = sorted(path.parent for path in Path("outputs").rglob("starts"))
    results = {folder: folder / "result.json" for folder in folders}
    return {folder: json.loads(path.read_text()) if path.exists() else {} for folder, path in results.items()}


def starts() -> list[str]:
    return [line for folder in runs() for line in (folder / "starts").read_text().splitlines()]


def epochs(folder: Path) -> int:
    with (folder / "metrics.csv").open() as file:
        return len(list(csv.DictReader(file)))


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.02)


@pytest.mark.thorough
def test_the_best_by_validation_is_a_command_line(search: Command, command: Command) -> None:
    done = search("trials=3", "seed=5")
    assert (done.code, done.err) == (0, "")
    scores = sorted(result["valid_ppl"] for result in runs().values())
    assert len(scores) == 3
    *_, said, line = done.out.splitlines()
    assert said == f"best: {scores[0]:.2f} (perplexity, validation), by which alone it was chosen:"
    python, script, *words = shlex.split(line)
    assert (python, script) == ("python", "src/train.py")
    assert words[:4] == ["model=rnn", "trainer.max_epochs=3", "seed=5", words[3]]
    (found,) = (float(word.partition("=")[2]) for word in words if word.startswith("optimizer.lr="))
    assert 110 + 100 * abs(math.log(found / 0.5)) == scores[0]
    assert command("train", *words, "--cfg", "job").code == 0
    assert {line.split(maxsplit=1)[1] for line in starts()} == {
        f"{journal().parent.name} trial {number}" for number in (1, 2, 3)
    }


def test_scores_have_the_unit_of_the_task(search: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_UNIT", "nll")
    done = search("trials=1")
    assert (done.code, done.err) == (0, "")
    (result,) = runs().values()
    assert f"best: {result['valid_nll']:.3f} (nats per frame, validation), by which" in done.out
    summary = json.loads(journal().with_name("study.json").read_text())
    assert (summary["metric"], summary["trials"][0]["valid_nll"]) == ("valid_nll", result["valid_nll"])


@pytest.mark.thorough
def test_a_search_goes_on_to_the_number_of_trials_asked_for(search: Command) -> None:
    first = search("trials=2")
    before = runs()
    assert search("trials=2").out.splitlines()[-2:] == first.out.splitlines()[-2:]
    assert runs() == before
    more = search("trials=4")
    assert more.out.startswith(f"{journal().parent.name}: 2 of 4 trials\n")
    assert "trial 3 of 4 " in more.out
    assert len(runs()) == len(starts()) == 4
    assert runs().items() >= before.items()


@pytest.mark.thorough
def test_an_interrupted_search_draws_what_one_in_one_go_draws(search: Command) -> None:
    for number in (1, 2, 3):
        search(f"trials={number}", "study=pieces")
    pieces = runs()
    assert search("trials=3", "study=whole").code == 0
    assert runs() == pieces  # what is done already is not run again
    assert len(starts()) == 3


@pytest.mark.thorough
def test_runs_that_diverge_are_failed_trials(search: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_DIVERGE", "0.4")
    done = search("trials=6")
    assert done.code == 0
    diverged = [result for result in runs().values() if result["status"] == "diverged"]
    assert 0 < len(diverged) < 6
    assert done.out.count(": the loss is infinite\n") == len(diverged)
    assert "6 of 6 trials" in search("trials=6").out
    monkeypatch.setenv("FAKE_DIVERGE", "0")
    assert search("trials=1", "seed=2").err.startswith("error: no trial was completed")


@pytest.mark.thorough
def test_another_failure_ends_the_search_and_its_trial_is_repeated(
    search: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "1")
    done = search("trials=2")
    assert done.code == 2
    assert done.err.startswith("error: trial 1 of 2 failed, and not by diverging: the corpus is on fire; ")
    (folder,) = runs()
    monkeypatch.delenv("FAKE_FAIL")
    monkeypatch.setenv("FAKE_END", "124")  # as trainer.max_time ends it
    done = search("trials=2")
    assert (done.code, done.err) == (
        124,
        "error: trial 1 of 2 was cut off. The same command continues it\n",
    )
    monkeypatch.delenv("FAKE_END")
    assert search("trials=2").code == 0
    assert len((folder / "starts").read_text().splitlines()) == 3
    assert len(runs()) == 2


@pytest.mark.thorough
def test_a_trial_worse_than_the_median_is_ended_early(
    search: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EPOCH", "0.2")
    words = ["trials=5", "trainer.max_epochs=5", "pruning={trials:1,epoch:2}", "batch=1"]
    done = search(*words)
    assert done.code == 0
    pruned = [folder for folder, result in runs().items() if not result]
    assert len(pruned) == done.out.count("  pruned  ") > 0
    assert all(2 <= epochs(folder) < 5 for folder in pruned)
    assert not any(is_claimed(folder) for folder in pruned)
    assert "5 of 5 trials" in search(*words).out
    assert search("pruning=null", "study=unpruned", *words[:2]).code == 0
    assert all(epochs(folder) == 5 for folder in runs())


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGKILL, -9),
    ],
)
def test_a_search_that_is_ended_leaves_all_resumable(
    number: signal.Signals, code: int, search: Command, forked_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EPOCH", "0.4")
    words = [
        forked_python,
        str(ROOT / "src" / "tune.py"),
        *settled([*FAKE, "trials=2", "trainer.max_epochs=6"]),
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    process.send_signal(number)
    process.communicate()
    assert process.returncode == code
    (folder,) = runs()
    before = epochs(folder)
    time.sleep(1)  # longer than an epoch: nothing is at work any more
    assert epochs(folder) == before < 6
    monkeypatch.setenv("FAKE_EPOCH", "0")
    assert search("trials=2", "trainer.max_epochs=6").code == 0
    assert [line.split()[0] for line in (folder / "starts").read_text().splitlines()] == [
        "1",
        str(before + 1),
    ]
    assert len(runs()) == 2


@pytest.mark.thorough
def test_what_a_kill_leaves_of_the_journal_is_mended(search: Command) -> None:
    assert search("trials=1").code == 0
    path = journal()
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"op_code": 4, "wor')
    path.with_name("journal.log.lock").symlink_to(path)
    assert search("trials=2").code == 0
    assert path.read_bytes().startswith(whole)
    assert len(runs()) == 2
    path.write_text('{"op_code": 99, "worker_id": "x"}\n')
    assert search("trials=2").err.startswith(f"error: {path} is damaged (")
    for other in ("no journal\n", "notes without an end"):
        path.write_text(other)
        assert search("trials=2").err.startswith(f"error: {path} is no journal of a search: move it away")
        assert path.read_text() == other


@pytest.mark.thorough
def test_one_search_at_a_time_and_one_search_a_study(search: Command) -> None:
    assert search("trials=1", "study=mine").code == 0
    assert "of other runs or another space" in search("trials=1", "study=mine", "model=hornn").err
    for word in ("space.model=null", "pruning=null"):
        assert "of other runs or another space" in search("trials=1", "study=mine", word).err
    with claim(Path("outputs/studies/mine")) as _:  # type: ignore[union-attr]
        assert search("trials=2", "study=mine").err.startswith("error: another process is searching in ")


@pytest.mark.thorough
def test_what_the_command_line_sets_and_what_runs_do_not_have_is_left_out(search: Command) -> None:
    done = search("trials=1", "model=lstm", "+space.loss_reduction=[mean,sum]", "optimizer.lr=0.3")
    assert done.out.splitlines()[1:3] == [
        "  searched: loss_reduction of mean, sum",
        "  left out: optimizer.lr (set), model.activation (not in these runs)",
    ]
    assert "optimizer.lr=0.3" in shlex.split(done.out.splitlines()[-1])
    assert "optimizer.lr (set)" in search("trials=1", "optimizer={lr: 0.3}").out
    refused = search("trials=1", "+space.model.alpha=[0.3]").err
    assert refused.startswith("error: space.model.alpha: these runs")
    outside = search("trials=1", "model=lstm", "space.optimizer.lr.low=0.2")
    assert "  searched: optimizer.lr from 0.2 to 2 (log)" in outside.out
    assert (
        "  warning: optimizer.lr=0.1, as these runs have it, lies outside: no trial has it; " in outside.out
    )


def test_trials_share_the_gpus_of_the_launcher(search: Command) -> None:
    gpus = ["trainer=gpu", "hydra.launcher.gpus=[2,5]"]
    assert search("trials=4", "jobs=2", *gpus).code == 0
    assert {(folder / "gpus").read_text() for folder in runs()} == {"2", "5"}
    assert "needs 3 GPU(s), the launcher has 2 (2, 5)" in search("trials=5", *gpus, "trainer.devices=3").err
    assert "hydra.launcher.per_gpu must be" in search("trials=5", *gpus, "hydra.launcher.per_gpu=0").err


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trails=3"], "unknown key 'trails'; did you mean 'trials'?"),
        (["trials=many"], "trials must be a whole number, got 'many'"),
        (["jobs=0"], "jobs must be a whole number >= 1, got 0"),
        (["jobs=5"], "jobs=5: only batch=4 trials are drawn at a time: give fewer jobs, or a larger batch"),
        (["trials=0"], "trials must be a whole number >= 1, got 0"),
        (["model.hiden_size=3"], "unknown key 'model.hiden_size'"),
        (["run_dir=here"], "run_dir=here in a search"),
        (["overwrite=true"], "overwrite=True in a search"),
        (["sweeps=smoke_all_cells"], "leave out sweeps"),
        (["data=text8"], "data=text8 validates on its test text"),
        (["study=a/b"], "study must be letters"),
        (["study=[a]"], "study must be letters"),
        (["study=study"], "study=study is the name of a file of the program's own: give another one"),
        (["space=null"], "space must hold the constants to search with their ranges, got None"),
        (["~pruning.trials"], "pruning must hold trials and epoch, or be null, got {'epoch': "),
        (["seed=1,2"], "seed has several values, 1,2: give one, or the list [1,2]; train.py -m trains"),
        (["-m"], "a search runs its trials itself, for one model on one corpus: leave out -m"),
        (["hydra.mode=MULTIRUN"], "a search runs its trials itself"),
        (["pruning.epoch=0"], "pruning.epoch must be a whole number >= 1, got 0"),
        (["space.optimizer.lr=3"], "space.optimizer.lr must be a list of values, or {low: "),
        (["space.optimizer.lr=[0.1,0.2]"], "'+space.optimizer.lr=VALUE' takes its place"),
        (["space.optimizer.lr.high=inf"], "space.optimizer.lr must be a list of values, or {low: "),
        (["space.optimizer.lr.low=5"], "space.optimizer.lr: "),
        (["space.optimizer=null", "space.model=null"], "nothing is left to search"),
        (
            ["+space.data.min_count=[1,3]", "data=pydoc"],
            "space.data.min_count cannot be searched: it decides what validation scores",
        ),
        (["hydra.launcher.jobs=4"], "hydra.launcher.jobs=4 has no effect on a search"),
        (["hydra/launcher=slurm"], "hydra/launcher=slurm has no effect on a search"),
        (["hydra.sweeper.retry_failed=true"], "hydra.sweeper.retry_failed=true has no effect on a search"),
    ],
)
def test_a_search_that_cannot_be_is_refused(words: list[str], message: str, search: Command) -> None:
    done = search(*words)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert not starts()


def test_files_whose_validation_text_is_the_test_text_are_refused(search: Command) -> None:
    for name, text in {"train": "a b\n", "valid": "b a\n", "test": "b a\n"}.items():
        Path(f"{name}.txt").write_text(text)
    done = search("data=files", *(f"data.{name}={name}.txt" for name in ("train", "valid", "test")))
    assert (done.code, done.err) == (
        2,
        "error: data.valid=valid.txt is the test text, by which nothing may be chosen: give another file than "
        "data.test=test.txt, such as lines cut from the training text\n",
    )
    assert not starts()


def test_without_optuna_the_extra_is_named(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "optuna", None)
    done = command("tune", *FAKE)
    assert done.code == 2
    assert done.err.startswith("error: the search needs the package optuna: ")
    assert done.err.endswith("pip install -e '.[tune]'\n")


@pytest.mark.thorough
def test_jobs_change_no_outcome(search: Command, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials at a time draw, prune and choose what one at a time does."""
    monkeypatch.setenv("FAKE_EPOCH", "0.05")
    words = ["trials=6", "trainer.max_epochs=3", "pruning={trials:2,epoch:2}", "seed=3"]
    outcomes = []
    for jobs in (3, 1):
        folder = Path(f"jobs{jobs}")
        folder.mkdir()
        monkeypatch.chdir(folder)
        done = search(*words, f"jobs={jobs}")
        assert (done.code, done.err) == (0, "")
        (summary,) = Path("outputs/studies").glob("*/study.json")
        outcomes.append((json.loads(summary.read_text()), done.out.splitlines()[-2:]))
        monkeypatch.chdir(Path.cwd().parent)
    assert outcomes[0] == outcomes[1]
    states = {trial["state"] for trial in outcomes[0][0]["trials"]}
    assert states == {"complete", "pruned"}
    assert list(outcomes[0][0]["importance"]) == ["optimizer.lr", "model.activation"]


@pytest.mark.slow
def test_a_search_over_real_runs(
    command: Command, small: list[str], tmp_path: Path, quick_jobs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the whole space of conf/tune.yaml."""
    pytest.importorskip("optuna", reason="needs the tune extra")
    monkeypatch.chdir(tmp_path)
    done = command("tune", *small, "trials=2")
    assert (done.code, done.err) == (0, "")
    results = [json.loads(path.read_text()) for path in Path("outputs").rglob("result.json")]
    assert len(results) == 2
    completed = [result["valid_ppl"] for result in results if result["status"] == "completed"]
    assert f"best: {min(completed):.2f} (perplexity, validation)," in done.out
    assert len(shlex.split(done.out.splitlines()[-1])) == 2 + len(small) + 7
