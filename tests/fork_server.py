"""Python processes without the seconds of importing: a server that holds the libraries forks one for each command.

    python fork_server.py serve SOCKET USERS                waits for commands as long as any process locks USERS
    python fork_server.py run SOCKET EXECUTABLE WORDS...    what `python WORDS...` would be; EXECUTABLE: what it says
                                                            that it is, so that its own children come here, too

A forked process imports our own code afresh from the folder in which the command runs. Signals for the second command
reach it, and it ends with that. With HORNN_TEST_COMPOSE_ONLY set, it composes and checks what it would train, and
trains nothing.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from pathlib import Path

LIBRARIES = (
    "torch lightning hydra omegaconf wandb torchmetrics numpy rich yaml jinja2 optuna pytest"
    " lightning.pytorch.loggers lightning.pytorch.callbacks torch._dynamo"
)
STREAMS = (("stdin", "r", "strict"), ("stdout", "w", "strict"), ("stderr", "w", "backslashreplace"))
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)


def serve(path: str, users: str) -> None:
    for name in LIBRARIES.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    keep_media_folder()
    know_hydra()
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads is not forked"
    gc.freeze()  # no child's collector looks at what all share
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    while True:
        if not select.select([server], [], [], 0.5)[0]:
            with open(users) as file, contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)  # whoever locks USERS from now on starts another server
                return
            continue
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            attend(connection)
        connection.close()
        with contextlib.suppress(ChildProcessError):  # what they took counts as the server's
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def know_hydra() -> None:
    """Let Hydra find its plugins, and ANTLR the states of the grammars, once for all forked processes."""
    with contextlib.suppress(ImportError):
        from hydra.core.override_parser.overrides_parser import OverridesParser
        from hydra.core.plugins import Plugins
        from omegaconf import OmegaConf

        Plugins.instance()
        OverridesParser.create().parse_overrides(
            ["a.b=1", "+a/b@c.d=[x,2.5]", "~e", "a={b: null}", "a='x y'", "a=/x.y", "a=true,false"]
        )
        OmegaConf.to_object(OmegaConf.create({"a": "${oc.env:A,b}/c", "d": "${a}"}))


def keep_media_folder() -> None:
    """Leave the folder that W&B makes as it is imported: all forked processes have it, and each would remove it."""
    with contextlib.suppress(ImportError):
        from wandb.sdk.data_types._private import MEDIA_TMP

        atexit.unregister(MEDIA_TMP.cleanup)
        MEDIA_TMP._finalizer.detach()


def attend(connection: socket.socket) -> None:
    """Run one command in a child, hand on the client's signals, tell it the exit code or, as 256 - n, the signal n."""
    size = int.from_bytes(connection.recv(4), "big")
    text, files, _, _ = socket.recv_fds(connection, size, 3)
    while len(text) < size:
        text += connection.recv(size - len(text))
    child = os.fork()
    if child == 0:
        connection.close()
        os.setsid()
        become(json.loads(text), files)
    for file in files:
        os.close(file)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):
                connection.sendall((code % 256).to_bytes(1, "big"))
            os._exit(0)
        if select.select([connection], [], [], 0.01)[0]:
            number = connection.recv(1)
            os.kill(child, number[0] if number else signal.SIGKILL)


def become(command: dict, files: list[int]) -> None:
    """Be the process of this command."""
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["folder"])
    sys.executable = command["executable"]
    for number, (name, mode, errors) in enumerate(STREAMS):
        stream = os.fdopen(number, mode, buffering=1, errors=errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    words, code = command["words"], 0
    try:
        run_words(words)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        with contextlib.suppress(Exception):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code % 256)


def run_words(words: list[str]) -> None:
    while words[0] in ("-u", "-B"):
        words = words[1:]
    first, script = words[0], words[0] not in ("-c", "-m")
    own = [str(Path(first).resolve().parent)] if script else [os.getcwd()]
    more = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [*own, *filter(None, more), *sys.path[1:]]
    if os.environ.get("HORNN_TEST_COMPOSE_ONLY") and script:
        train_nothing()
    if script:
        sys.argv = words
        runpy.run_path(first, run_name="__main__")
    elif first == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(words[1], {"__name__": "__main__"})
    else:
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)


def train_nothing() -> None:
    import hornn.bench.program
    import hornn.run.train
    import hornn.sweep.search
    from hornn.sweep.expand import ROW, compose_jobs
    from hornn.sweep.sweeper import TableSweeper

    class Composed:
        """A launcher that composes each job with a word of its own, and runs none, which is no failure of theirs."""

        shows_jobs = True

        def __init__(self, sweeper: TableSweeper) -> None:
            self.sweeper = sweeper

        def launch(self, batch: list[list[str]], initial_job_idx: int) -> list[None]:
            seen = set[str]()
            jobs = []
            for words in batch:
                own = {word for word in words if not word.startswith(ROW)}
                jobs += [] if own <= seen else [words]
                seen |= own
            compose_jobs(self.sweeper.loader, self.sweeper.settings, jobs)
            print(f"{len(jobs)} of {len(batch)} jobs composed")
            return []

    def setup(sweeper: TableSweeper, *, hydra_context, task_function, config) -> None:
        sweeper.loader, sweeper.settings, sweeper.jobs = (
            hydra_context.config_loader,
            config,
            Composed(sweeper),
        )

    TableSweeper.setup = setup
    hornn.run.train.train = hornn.sweep.search.search = lambda *_: print("composed")
    hornn.bench.program.run = lambda *_: print("not measured")


def write_program(path: Path, server: Path, words: str = "") -> None:
    """A program that is to its caller what Python is, before the `words` if there are any."""
    line = f'exec {sys.executable} -S -E {Path(__file__).resolve()} run {server} "$0" {words}"$@"'
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def run(server: str, executable: str, words: list[str]) -> int:
    """The client: hand over the command, wait for its exit code."""
    command = {
        "words": words,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "executable": executable,
    }
    text = json.dumps(command).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(server)
    connection.sendall(len(text).to_bytes(4, "big"))
    sent = socket.send_fds(connection, [text], [0, 1, 2])
    connection.sendall(text[sent:])
    for number in SIGNALS:
        signal.signal(number, lambda number, frame: connection.sendall(number.to_bytes(1, "big")))
    answer = connection.recv(1)
    code = answer[0] if answer else 1
    if code > 256 - signal.NSIG:  # a signal: end likewise
        with contextlib.suppress(OSError):  # of signals that no process can handle
            signal.signal(256 - code, signal.SIG_DFL)
        os.kill(os.getpid(), 256 - code)
    return code


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
        sys.exit()
    sys.exit(run(sys.argv[2], sys.argv[3], sys.argv[4:]))
