"""A job ends when its launcher does, even one that was killed and could tell nobody."""

import contextlib
import os
import signal
import sys
import threading
import time

from hornn.command_line.ending import LAUNCHED

GRACE = 30.0  # seconds between asking and killing


def end_with_launcher() -> None:
    """In a job: watch for the end of the launcher from now on. Elsewhere: nothing."""
    if os.environ.get(LAUNCHED):
        threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    """Nothing is ever written to the pipe: reading returns when the kernel closes the launcher's end of it."""
    os.read(0, 1)
    with contextlib.suppress(OSError):  # the disk that holds the log may be full
        print("the launcher is gone: this job ends, and can be continued", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE)
    os.kill(os.getpid(), signal.SIGKILL)
