"""A process that has imported everything and becomes a command in a child of its own, in a third of a second.

It reads one JSON object a line, what `commands.py` wrote, and answers each with one. A child is the command itself from
there on: its own process group, its own files for stdout and stderr, what Python does at its end.
"""

import atexit
import gc
import json
import os
import resource
import runpy
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]


def import_all() -> None:
    """What the entries import, and the native kernels, so that no child has to."""
    import hornn.analysis.analyse
    import hornn.reporting.commands
    import hornn.run.train
    import hornn.sweep.launcher
    import hornn.sweep.search
    import hornn.sweep.status
    import hornn.use.evaluate
    import hornn.use.generate  # noqa: F401
    from hornn.kernels import library

    library.why_not()


def become(request: dict[str, Any]) -> NoReturn:
    """Run the command in this process, which is a child. It ends as the entry does."""
    os.setsid()
    os.chdir(request["folder"])
    for number, name in ((0, "/dev/null"), (1, request["out"]), (2, request["err"])):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, m) for n, m in ((0, "r"), (1, "w"), (2, "w")))
    os.environ.update(request["environment"])
    if request["memory"]:
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + request["memory"],) * 2)
    if request["fault"]:
        from faults.writes import install

        install(**request["fault"])
    sys.argv = [str(ROOT / "src" / f"{request['entry']}.py"), *request["words"]]
    sys.path.insert(0, str(ROOT / "src"))
    os._exit(end_of(lambda: runpy.run_path(sys.argv[0], run_name="__main__")))


def end_of(main: Callable[[], object]) -> int:
    """The exit code of a program, after all that Python does at its end but to free what the imports hold."""
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1 if stop.code else 0
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def wait(pid: int, seconds: float) -> dict[str, Any]:
    """How a child ended; one that has not by then is killed with its group."""
    until, late = time.monotonic() + seconds, False
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return {
                "code": os.waitstatus_to_exitcode(status),
                "late": late,
                "memory_mb": usage.ru_maxrss / 1024,
            }
        if time.monotonic() > until and not late:
            late = True
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.005)


def main() -> None:
    requests, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an import prints is no answer
    import_all()
    gc.freeze()  # no child's collector looks at what all share
    print(json.dumps({"ready": os.getpid()}), file=answers, flush=True)
    while line := requests.readline():
        request = json.loads(line)
        if "wait" in request:
            answer = wait(request["wait"], request["seconds"])
        else:
            pid = os.fork()
            if pid == 0:
                requests.close()
                answers.close()
                become(request)
            answer = {"pid": pid}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
