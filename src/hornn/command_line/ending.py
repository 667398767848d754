"""How every command ends: an exit code, one line on stderr where it is not 0, whatever became of its standard output.

0: done, also where the reader of its output went away first (`| head`). 2: refused or failed, in words. 75: another
process works on the run. 124: a training's time was over (`trainer.max_time`), the same command goes on. 130: Ctrl-C.
143: SIGTERM.
"""

import errno
import io
import os
import pwd
import resource
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from hornn.places import PACKAGE, as_typed
from hornn.shown import first_line, shown
from hornn.writing import FULL, LIMITS

# In the environment of a sweep's job, whose standard input is then a pipe that its launcher holds open.
LAUNCHED = "HORNN_LAUNCHED"
# Also there: the name of the sweep, the names of the job's row and of its run, and how many jobs share its GPU.
IN_SWEEP, IN_ROW, IN_RUN, RUNS_ON_GPU = "HORNN_SWEEP", "HORNN_ROW", "HORNN_RUN", "HORNN_RUNS_ON_GPU"
# Set once a run has taken the place of what was there, as overwrite=true asks for.
BEGUN = threading.Event()
FAILED = 2
UNFINISHED = 124  # what timeout(1) says
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check its permissions or choose another folder",
    errno.EROFS: "it can only be read there: choose another folder",
    errno.EEXIST: "a file is in the way, or a link that leads nowhere: move it, or mount what it leads to",
    **dict.fromkeys(FULL, "free some space on that disk"),
    **LIMITS,
}


def start(command: str) -> None:
    """Run a command of `hornn.commands`; Ctrl-C is one line from here on, also while the command is imported."""
    for name in [name for name, value in os.environ.items() if name.startswith("HORNN_") and not value]:
        del os.environ[name]  # an empty variable is none: for a path it would mean the current folder
    if not os.environ.get("HOME"):  # as services have it
        os.environ.pop("HOME", None)
        with suppress(KeyError):  # a user whom the system does not know
            os.environ["HOME"] = pwd.getpwuid(os.getuid()).pw_dir
    try:
        os.getcwd()
    except FileNotFoundError:
        end("the current folder is there no more: go to another one", FAILED)
    beside = Path(sys.argv[0]).resolve().parent / PACKAGE.name
    if beside.is_dir() and beside != PACKAGE.resolve():
        end(
            f"{sys.argv[0]} would run the code of {PACKAGE}, not {beside}: leave out -P, -I and PYTHONSAFEPATH",
            FAILED,
        )
    try:
        with interrupted_at_once():
            module = import_module(f"hornn.commands.{command}")
        module.run()
    except KeyboardInterrupt:
        end("interrupted", INTERRUPTED)
    except (ImportError, MemoryError, SystemError) as error:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            raise
        end(
            f"{first_line(error)}: the address space of a process is limited to {limit / 2**20:,.0f} MiB (ulimit -v), "
            "and torch needs several GiB: raise the limit",
            FAILED,
        )


@contextmanager
def interrupted_at_once(continues: bool = False) -> Iterator[None]:
    """Within it Ctrl-C ends the process itself, with its line: for imports, which leave nothing to put away.

    Libraries catch the error of Ctrl-C as they are imported: they go on, or fail later, half loaded.
    continues: the same command goes on, and so the line says; SIGTERM has its line, too.
    """
    defaults: dict[int, Any] = {signal.SIGINT: signal.default_int_handler}
    if continues:
        defaults[signal.SIGTERM] = signal.SIG_DFL
    if threading.current_thread() is not threading.main_thread():
        defaults = {}
    # somebody else's handler stays, as where a shell has Ctrl-C ignored
    before = {number: found for number, found in defaults.items() if signal.getsignal(number) is found}
    ends = {
        signal.SIGINT: (describe_stop("interrupted", continues), INTERRUPTED),
        signal.SIGTERM: (describe_stop("terminated", continues), TERMINATED),
    }

    def leave(number: int, frame: object) -> None:
        said, code = ends[signal.Signals(number)]
        os.write(2, f"error: {said}\n".encode())
        os._exit(code)

    for number in before:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def describe_stop(how: str, continues: bool) -> str:
    """How a command was stopped and, where the same one goes on from there, that it does."""
    again = same_command() if BEGUN.is_set() else "the same command"
    return f"{how}; {again} continues" if continues else how


def run(main: Callable[[], str | None], needed: bool = False) -> None:
    """Run a command that is not Hydra's and print what it returns; an expected error is one line and an exit code.

    needed: see `lasting_output`.
    """
    with lasting_output(needed):
        try:
            said = main()
            if said is not None:
                print(as_typed(said))
        except KeyboardInterrupt:
            end("interrupted", INTERRUPTED)
        except OSError as error:
            end(describe_system_error(error), FAILED)
        except ValueError as error:
            end(str(error), FAILED)


def end(message: str, code: int) -> NoReturn:
    """End the program with one line on stderr."""
    print(f"error: {as_typed(' '.join(shown(message).split()))}", file=sys.stderr)
    sys.exit(code)


def describe_system_error(error: OSError) -> str:
    """The path, what the system says of it, and what to do about it."""
    if error.errno is None or error.strerror is None:
        return str(error)
    place = f"{error.filename}: " if error.filename is not None else ""
    remedy = f"; {REMEDIES[error.errno]}" if error.errno in REMEDIES else ""
    return f"{place}{error.strerror}{remedy}"


def same_command() -> str:
    """What continues a run that was cut off: the same command, but for a word by which the run would begin anew.

    A sweep's launcher drops that word by itself where it starts a job a second time.
    """
    begins_anew = not os.environ.get(LAUNCHED) and any(
        word.lstrip("+").lower() == "overwrite=true" for word in sys.argv
    )
    return f"the same command{' without overwrite=true' * begins_anew}"


@contextmanager
def lasting_output(needed: bool) -> Iterator[None]:
    """Let the command outlive its standard output and error: what cannot be written there is dropped.

    needed: whether standard output is what the command is for; then the command fails where that is closed or could
    not be written. Else one line says that no more is shown. A reader that has gone away has what it wanted, so nothing
    is said. A character that the locale does not have is written as `\\N`, not refused.
    """
    outlet = None
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open_nowhere())
        elif stream is getattr(sys, f"__{name}__"):  # not one that a caller has put in its place
            lasting = Outlet(stream.fileno(), speaks=name == "stdout" and not needed)
            outlet = lasting if name == "stdout" else outlet
            setattr(sys, name, lasting.like(stream))
    if needed and sys.__stdout__ is None:
        end("standard output is closed: send it elsewhere", FAILED)
    stop = None
    try:
        yield
    except SystemExit as caught:
        stop = caught
    finally:
        sys.stdout.flush()
    if needed and outlet and outlet.lost and (stop is None or not stop.code):
        end(f"standard output cannot be written ({outlet.lost}): send it elsewhere", FAILED)
    if stop is not None:
        raise stop


def reader_has_gone() -> bool:
    """Whether the reader of standard output has gone away (`| head`), so that nothing more need be written there."""
    outlet = getattr(getattr(sys.stdout, "buffer", None), "raw", getattr(sys.stdout, "buffer", None))
    return isinstance(outlet, Outlet) and outlet.gone


def open_nowhere() -> Any:
    """A stream for one that was closed when the program began, whose number no other file is to get."""
    numbers = [os.open(os.devnull, os.O_RDWR)]
    while numbers[-1] <= 2:
        os.set_inheritable(numbers[-1], True)
        numbers.append(os.open(os.devnull, os.O_RDWR))
    return os.fdopen(numbers[-1], "w", encoding="utf-8")


class Outlet(io.FileIO):
    """An open file of the system that is written as long as it can be; then it, too, leads nowhere.

    speaks: say so once on stderr. gone: whether its reader has gone away. lost: what the system said where it can no
    longer be written for another reason.
    """

    def __init__(self, number: int, speaks: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self.speaks = speaks
        self.gone = False
        self.lost: str | None = None

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        written = 0
        try:
            while written < len(view):
                taken = super().write(view[written:])
                if taken is None:  # a pipe that does not block, and is full
                    select.select([], [self], [])
                written += taken or 0
        except OSError as error:
            # so that whatever else writes there, in this process or its children, goes on
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            self.gone = error.errno == errno.EPIPE
            if not self.gone:
                self.lost = error.strerror
                if self.speaks:
                    note = f"standard output cannot be written ({self.lost}): no more is shown, the command goes on"
                    print(f"warning: {note}", file=sys.stderr)
        return len(view)

    def like(self, stream: Any) -> io.TextIOWrapper:
        """A text stream on it with the settings of another one."""
        return io.TextIOWrapper(
            self if stream.write_through else io.BufferedWriter(self),
            encoding=stream.encoding,
            errors="backslashreplace" if stream.errors == "strict" else stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
