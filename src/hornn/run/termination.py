"""SIGTERM in a training: all processes of the run end at once, and one of them says so in one line.

Lightning takes note of the signal, ends at the next update with exit code 0, and asks the other ranks by a collective
from within its handler, where it can wait for ever. Below Slurm it takes SIGUSR1, too, and writes a checkpoint of its
own, which the test would then score in the place of the best one.
"""

import os
import signal
import sys
from typing import Any, NoReturn

import lightning
from lightning.pytorch.callbacks import Callback

from hornn.command_line.ending import TERMINATED, same_command

RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")  # say which process of several this is, before Lightning knows
# What gloo says of a dead process.
CLOSED = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")


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
        print(f"error: terminated; {same_command()} continues", file=sys.stderr, flush=True)
    os._exit(TERMINATED)


def leave_to_first(trainer: lightning.Trainer) -> None:
    """Where all ranks have decided to end, end those that Lightning started with 0: only the first says how it ended.

    Lightning kills the first one of a machine, which may still be at work, within seconds after another one ended with
    another code.
    """
    if trainer.local_rank != 0:
        raise SystemExit(0)


def end_other_ranks(trainer: lightning.Trainer) -> None:
    launcher = trainer.strategy.launcher
    if launcher is not None:
        launcher.kill(signal.SIGKILL)


def explain_lost_rank(error: Exception, trainer: lightning.Trainer) -> None:
    """Raise ProcessLost where a collective failed because another process of the run has ended; else do nothing."""
    if trainer.world_size > 1 and any(words in str(error) for words in CLOSED):
        end_other_ranks(trainer)
        raise ProcessLost(f"another process of this run has ended; {same_command()} continues") from error
