"""Slurm without accounting, which most small clusters lack: submitit then finds results by their files."""

import logging
from typing import Any

QUIETLY = ["sh", "-c", 'exec "$@" 2>/dev/null', "sh"]


def quiet_accounting() -> None:
    """Let submitit ask for accounts without a word every few seconds where there are none."""
    from submitit.slurm.slurm import SlurmInfoWatcher

    logging.getLogger("submitit").addFilter(lambda line: "Bypassing sacct error" not in line.getMessage())
    make = SlurmInfoWatcher._make_command

    def make_quiet(self: Any) -> list[str] | None:
        command = make(self)
        return None if command is None else [*QUIETLY, *command]

    SlurmInfoWatcher._make_command = make_quiet  # type: ignore[method-assign]
