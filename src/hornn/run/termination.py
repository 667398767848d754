"""SIGTERM in a training: all processes of the run end at once, and one of them says so in one line.

Lightning takes note of the signal, ends at the next update with exit code 0, and asks the other ranks by a collective
from within its handler, where it can wait for ever. Below Slurm it takes SIGUSR1, too, and writes a checkpoint of its
own, which the test would then score in the place of the best one.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import lightning
from lightning.pytorch.callbacks import Callback

from hornn.command_line.ending import TERMINATED, describe_stop, same_command

RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")  # say which process of several this is, before Lightning knows
# What gloo and NCCL say of a dead process.
CLOSED = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "Connection closed by remote peer",
    "NCCL communicator was aborted",
    "ncclRemoteError",
)
TAKEN = "EADDRINUSE"  # what torch says of the port at which the first process is to meet the others


class ProcessLost(ValueError):
    """A process that the run needs has ended, as where a cluster ends all processes of a job."""

    exit_code = TERMINATED


class EndAtOnce(Callback):
    """Ends the run's processes on SIGTERM, and on SIGUSR1 below Slurm.

    What is on disk is whole at any time: the same command continues the run.
    """

    def on_train_start(self, trainer: lightning.Trainer, module: Any) -> None:
        heed(trainer)

    def on_test_start(self, trainer: lightning.Trainer, module: Any) -> None:
        heed(trainer)


def heed_from_the_start(alone: bool) -> None:
    """End the first process on SIGTERM with a word also before and after training, as while a corpus is prepared.

    alone: whether the run has one process, which is the first one whatever a cluster calls it.
    """
    if alone or all(os.environ.get(key, "0") == "0" for key in RANKS):
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(TERMINATED))


def heed(trainer: lightning.Trainer) -> None:
    """Take the signal from Lightning, which has set its handler by now and sets the earlier one again at the end."""
    taken = [signal.SIGTERM]
    if "SLURM_JOB_ID" in os.environ:
        taken.append(signal.SIGUSR1)
    for number in taken:
        signal.signal(number, lambda number, frame: end(trainer))


def end(trainer: lightning.Trainer) -> NoReturn:
    """End this process; the first rank ends the others, too. One process alone unwinds, several do not wait."""
    if trainer.world_size == 1:
        raise SystemExit(TERMINATED)
    if trainer.is_global_zero:
        end_other_ranks(trainer)
        print(f"error: {describe_stop('terminated', continues=True)}", file=sys.stderr, flush=True)
    os._exit(TERMINATED)


def leave_to_first(trainer: lightning.Trainer) -> None:
    """End this process with 0 where Lightning started it. To be called where all ranks have decided to end.

    The first process alone tells how the run ended. Lightning kills this first process, which may still be at work,
    within seconds after another one has ended with another code than 0.
    """
    if trainer.local_rank != 0:
        raise SystemExit(0)


@contextmanager
def end_together(trainer: lightning.Trainer) -> Iterator[None]:
    """Let no process that this one has started outlive an error of it: it would wait for this one for ever."""
    try:
        yield
    except BaseException:
        end_other_ranks(trainer)
        raise


def end_other_ranks(trainer: lightning.Trainer) -> None:
    """Kill the processes that Lightning has started from this one, before it sees them dead and kills this one, too."""
    started = getattr(trainer.strategy.launcher, "procs", [])
    ranks = list(started)
    started.clear()
    for rank in ranks:
        rank.kill()


def explain_lost_rank(error: Exception, trainer: lightning.Trainer) -> None:
    """Raise an error in words where the processes of a run have lost, or cannot find, each other; else do nothing.

    ProcessLost: a collective failed because another one has ended. ValueError: the port at which they meet is taken.
    """
    if TAKEN in str(error):
        raise ValueError(
            f"MASTER_PORT={os.environ['MASTER_PORT']} is taken by another process: set MASTER_PORT to a free port "
            "(1024 to 65535), or unset it, and the run finds one"
        ) from error
    if trainer.world_size > 1 and any(words in str(error) for words in CLOSED):
        raise ProcessLost(f"another process of this run has ended; {same_command()} continues") from error
