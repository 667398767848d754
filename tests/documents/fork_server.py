"""Python processes without the seconds of importing: a server that holds the libraries forks one for each command.

    python fork_server.py serve SOCKET           waits for commands
    PYTHON_SERVER=SOCKET python fork_server.py run WORDS...     what `python WORDS...` would be

A forked process imports our own code afresh from the folder in which the command runs. With HORNN_TEST_COMPOSE_ONLY
set, it composes and checks what it would train, and trains nothing.
"""

import contextlib
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
    "torch lightning hydra omegaconf wandb torchmetrics numpy rich yaml jinja2 optuna pytest matplotlib.figure"
    " matplotlib.backends.backend_svg lightning.pytorch.loggers lightning.pytorch.callbacks torch._dynamo"
)
OWN = ("src", "")


def serve(path: str) -> None:
    for name in LIBRARIES.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads is not forked"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            attend(connection)
        connection.close()


def attend(connection: socket.socket) -> None:
    """Run one command in a child; tell the client how it ended. A client that goes ends its command."""
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
        if select.select([connection], [], [], 0.02)[0] and not connection.recv(1):
            os.kill(child, signal.SIGTERM)


def become(command: dict, files: list[int]) -> None:
    """Be the process of this command."""
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["folder"])
    sys.executable = command["executable"]
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering=1, closefd=False) for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
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
            import atexit

            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code % 256)


def run_words(words: list[str]) -> None:
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
    from hornn.sweep.expand import compose_jobs
    from hornn.sweep.sweeper import TableSweeper

    class Composed:
        """A launcher that composes the jobs and runs none."""

        def __init__(self, sweeper: TableSweeper) -> None:
            self.sweeper = sweeper

        def launch(self, batch: list[list[str]], initial_job_idx: int) -> list[None]:
            jobs = compose_jobs(self.sweeper.loader, self.sweeper.settings, batch)
            print(f"{len(jobs)} jobs composed")
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


def run(words: list[str]) -> int:
    """The client: hand over the command, wait for its exit code."""
    command = {
        "words": words,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "executable": os.environ["PYTHON_CLIENT"],
    }
    text = json.dumps(command).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["PYTHON_SERVER"])
    connection.sendall(len(text).to_bytes(4, "big"))
    sent = socket.send_fds(connection, [text], [0, 1, 2])
    connection.sendall(text[sent:])
    answer = connection.recv(1)
    return answer[0] if answer else 1


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(run(sys.argv[2:]))
