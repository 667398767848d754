"""Errors in words: the one line on stderr and the exit code, and what keeps its traceback."""

import os
import pwd
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from hornn.command_line import ending
from hornn.command_line.ending import start
from hornn.command_line.messages import launch

Run = Callable[..., tuple[int, str, str]]

# Python 3.12.8 and later write the choices of an option without quotes.
CHOICES = "'job', 'hydra', 'all'" if sys.version_info < (3, 12, 8) else "job, hydra, all"
# Command line -> what the one line says, in full or, where it is Hydra's wording, in part.
BAD = {
    # what cannot be read
    "model.order": "cannot read 'model.order': missing EQUAL at '<EOF>'; write key=value",
    "data.train=~/a.txt": "cannot read 'data.train=~/a.txt': write $HOME in the place of ~",
    "=3": "cannot read '=3': it has no key; write key=value",
    'checkpoint="x': "cannot read 'checkpoint=\"x': ",
    "checkpoint=run(1)/best.ckpt": (
        "expecting <EOF>; write key=value; a value with other signs than a plain path has stands in two pairs of "
        "quotes, \"KEY='VALUE'\""
    ),
    "checkpoint=1,2": (
        "checkpoint has several values, 1,2: give one, or the list [1,2]; train.py -m trains with each"
    ),
    "+seed=4": "An item is already at 'seed'. Either remove + prefix: 'seed=4'",
    "seed=1 seed=2": "seed is given twice, by seed=1 and by seed=2: give it once",
    "seed=1 ++seed=2": "seed is given twice, by seed=1 and by ++seed=2: give it once",
    "-m seed=1,2 seed=3": "seed is given twice, by seed=1,2 and by seed=3: give it once",
    "action=read action=read": "action is given twice, by action=read and by action=read: give it once",
    "--epochs 5": "cannot place '--epochs' on the command line: settings are written key=value",
    "seed=1 -m seed=2": "cannot place 'seed=2' on the command line: ",
    "--cfg everything": f"argument --cfg/-c: invalid choice: 'everything' (choose from {CHOICES})",
    "-cp absent": "Primary config directory not found.",
    # bad values, found in the job
    "model.order=0": "order must be 1 or more, got 0",
    "trainer.max_epochs=-1": "trainer: max_epochs must be 0 or more, got -1",
    "trainer.max_epochs=two": "trainer: '<' not supported between instances of 'str' and 'int'",
    "action=read": "missing value 'checkpoint': give checkpoint=...",
    "action=read checkpoint=${absent}": "checkpoint: Interpolation key 'absent' not found",
    "action=read checkpoint=${fail:it}": (
        "checkpoint: ValueError raised while resolving interpolation: cannot resolve it"
    ),
    "action=open": "absent/file: No such file or directory; check the path",
    "action=deny": "/closed: Permission denied; check its permissions or choose another folder",
    "action=write run_dir=/full": (
        "No space left on device; free some space on that disk or write elsewhere with run_dir=FOLDER"
        " (the results of this run go below /full)"
    ),
    "action=lightning": "no such accelerator",
    "action=memory": "there is not enough memory (can't allocate memory: 9 bytes): lower the sizes of the model",
    "-m model.order=2,0": "order must be 1 or more, got 0 (in the job model.order=0)",
}


def run_process(app: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    """The command in a process of its own."""
    source = str(Path(__file__).parents[2] / "src")
    env = {**os.environ, "PYTHONPATH": source, **environment}
    done = subprocess.run(
        [sys.executable, "toy.py", *words], cwd=app, env=env, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.each(2)
@pytest.mark.parametrize("command", BAD)
def test_bad_input_is_one_line(refuse: Callable[[str], str], command: str) -> None:
    assert BAD[command] in refuse(command)


@pytest.mark.parametrize(
    "command", ["action=interrupt", "action=interrupt_lightning", "action=interrupt_cleanup"]
)
def test_interruption_is_one_line(run: Run, command: str) -> None:
    assert run(command)[::2] == (130, "error: interrupted\n")


def test_what_fails_after_an_interruption_is_said_with_it(run: Run) -> None:
    code, _, err = run("action=interrupt_full")
    assert code == 130
    assert err.startswith("error: interrupted; No space left on device; free some space on that disk")


def test_a_job_of_a_sweep_may_be_told_twice(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher puts words of its own behind the words of the table."""
    monkeypatch.setenv("HORNN_LAUNCHED", "1")
    assert run("seed=1", "seed=2")[::2] == (0, "")


def test_interruption_before_the_command_begins_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`launch` sets Hydra up before it runs anything."""

    class Interrupted:
        @staticmethod
        def run() -> None:
            raise KeyboardInterrupt

    with (
        patch("hornn.command_line.ending.import_module", lambda name: Interrupted),
        pytest.raises(SystemExit) as stop,
    ):
        start("train")
    assert (stop.value.code, capsys.readouterr().err) == (130, "error: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "said"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")]
)
def test_an_interruption_that_an_import_catches_ends_the_command(
    tmp_path: Path, name: str, code: int, said: str
) -> None:
    """As scientific libraries do: they would go on half loaded. Here it is the module of a cell."""
    (tmp_path / "catching.py").write_text(
        "import os, signal\n"
        "try:\n"
        f"    os.kill(os.getpid(), signal.{name})\n"
        "except BaseException:\n"
        "    pass\n"
        "from hornn.cells.elman import Rnn\n"
    )
    (tmp_path / "model").mkdir()
    node = "_target_: catching.Rnn\n_partial_: true\nhidden_size: 4\nactivation: linear\n"
    (tmp_path / "model" / "catching.yaml").write_text(node)
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, source / "train.py", "model=catching", f"--config-dir={tmp_path}"],
        env={**os.environ, "PYTHONPATH": f"{source}:{tmp_path}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stderr) == (code, f"error: {said}; the same command continues\n")


def test_fault_of_the_program_keeps_its_traceback(run: Run) -> None:
    with pytest.raises(KeyError, match="absent"):
        run("action=fault")


@pytest.mark.slow
def test_shell_sees_one_line_and_the_exit_code(app: Path) -> None:
    assert run_process(app, "model.order=0") == (
        2,
        "limit_val_batches=None\n",
        "error: order must be 1 or more, got 0\n",
    )
    code, out, err = run_process(app, "-m", "model.order=1,0,2")
    assert (code, err) == (2, "error: order must be 1 or more, got 0 (in the job model.order=0)\n")
    # The good jobs ran, and children would see no variable.
    assert out.count("seed=1 HYDRA_FULL_ERROR=None") == 2
    code, out, err = run_process(app, "--cfg", "job", "trainer.limit_val_batches=5")
    assert (code, err) == (0, "")
    assert "limit_val_batches: 5" in out
    code, _, err = run_process(app, "action=fault")
    assert code == 1
    assert err.startswith("Traceback (most recent call last):")
    assert err.endswith("KeyError: 'absent'\n")


@pytest.mark.each(4)
@pytest.mark.slow
@pytest.mark.parametrize("command", ["model.order=0", "model=rn", "model.ordr=3", "action=interrupt"])
def test_full_error_shows_the_traceback(app: Path, command: str) -> None:
    code, _, err = run_process(app, command, HYDRA_FULL_ERROR="1")
    assert code != 0
    assert "Traceback (most recent call last):" in err
    assert "error: " not in err.splitlines()[-1][:7]


@pytest.mark.slow
def test_import_is_light() -> None:
    heavy = "{'torch', 'lightning', 'wandb'}"
    check = f"import hornn.command_line.messages, sys; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], timeout=60).returncode == 0


def test_an_error_of_a_running_cell_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    from hornn.cells.elman import Rnn

    class Mine(Rnn):
        def __init__(self, hidden_size: int) -> None:
            if hidden_size < 1:
                raise ValueError(f"hidden_size must be 1 or more, got {hidden_size}")
            super().__init__(2, hidden_size)

        def step(self, *args: Any) -> Any:
            return int("x")  # a ValueError, a call below the step

    def read() -> None:
        Mine(3).step()

    def build() -> None:
        Mine(0)

    for main in (read, build):
        with pytest.raises(SystemExit, match="2"), patch.object(sys, "argv", ["toy"]):
            launch(main)
    running, refused = capsys.readouterr().err.splitlines()
    assert running.startswith("error: invalid literal for int() with base 10: 'x' (in step(), ")
    assert re.search(rf"{re.escape(__file__)}:\d+; HYDRA_FULL_ERROR=1 shows the whole way\)$", running)
    assert refused == "error: hidden_size must be 1 or more, got 0"


def test_an_empty_variable_of_the_environment_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As containers hand on what nobody has set; for a folder it would mean the current one."""
    monkeypatch.setenv("HORNN_CACHE", "")
    monkeypatch.setenv("HORNN_DATA", "/data")
    seen: dict[str, str] = {}
    module = SimpleNamespace(run=lambda: seen.update(os.environ))
    monkeypatch.setattr(ending, "import_module", lambda name: module)
    start("train")
    assert "HORNN_CACHE" not in seen
    assert seen["HORNN_DATA"] == "/data"


@pytest.mark.parametrize("limit", [300 << 20, -1])
def test_a_library_for_which_the_address_space_has_no_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], limit: int
) -> None:
    """As clusters limit it; without a limit the library itself is at fault, and the way to it is shown."""

    def fail(name: str) -> None:
        raise ImportError("libtorch.so: failed to map segment")

    monkeypatch.setattr(ending, "import_module", fail)
    monkeypatch.setattr("resource.getrlimit", lambda kind: (limit, limit))
    with pytest.raises(ImportError if limit < 0 else SystemExit):
        start("train")
    said = "is limited to 300 MiB (ulimit -v), and torch needs several GiB: raise the limit\n"
    assert capsys.readouterr().err.endswith(said if limit > 0 else "")


@pytest.mark.parametrize("home", ["", None])
def test_without_a_home_the_system_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", home)
    seen: dict[str, str] = {}
    monkeypatch.setattr(
        ending, "import_module", lambda name: SimpleNamespace(run=lambda: seen.update(os.environ))
    )
    start("train")
    assert seen["HOME"] == pwd.getpwuid(os.getuid()).pw_dir


def test_the_script_of_another_checkout_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Python takes an installed package first where PYTHONSAFEPATH keeps the script's folder out of its path."""
    (tmp_path / "hornn").mkdir()
    monkeypatch.setattr("sys.argv", [str(tmp_path / "train.py")])
    with pytest.raises(SystemExit):
        start("train")
    assert "leave out -P, -I and PYTHONSAFEPATH" in capsys.readouterr().err


def test_the_same_command_begins_anew_until_it_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["train.py", "overwrite=true"])
    monkeypatch.setattr(ending, "BEGUN", Event())
    assert ending.describe_stop("interrupted", continues=True) == "interrupted; the same command continues"
    ending.BEGUN.set()
    assert ending.describe_stop("interrupted", continues=True).endswith(
        "the same command without overwrite=true continues"
    )
