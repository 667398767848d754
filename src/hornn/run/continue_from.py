"""A finished run trained further: what it left becomes the beginning of the run with more epochs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hornn.card import make_card
from hornn.checkpoint import CARD, read_checkpoint, write_checkpoint
from hornn.data.base import Data
from hornn.result import RESULT
from hornn.run.folder import put_on_record, require_best, require_own, require_same_code, require_same_content
from hornn.run.identity import BEST, LAST, SNAPSHOTS, Identity, other_run
from hornn.run.keeper import PAYLOAD
from hornn.run.lock import lock_folder

# Where a run ends. How it gets there does not depend on these.
EPOCHS, STEPS = "trainer.max_epochs", "trainer.max_steps"


def carry_over(source: Path, identity: Identity, data: Data) -> None:
    """Copy the checkpoints of the finished run in the folder `source` to the folder of this one, which goes on there.

    Weights, the optimizer's state, the schedule, the stream's place and random numbers come along, so this run gets
    the numbers that it would have got from its first epoch on. A folder that holds a run already stays as it is.

    Raises FileNotFoundError where `source` has no checkpoints, and ValueError where its run differs in more than where
    it ends, is not shorter in epochs and in updates, or ended in another way than by its number of epochs, or where the
    folder holds files of no run.
    """
    folder = identity.folder
    if holds_run(folder):
        return
    name = f"continue_from={source}"
    if not source.is_dir():
        raise FileNotFoundError(f"{name} is no folder: give the folder of a finished run")
    for file in (LAST, BEST):
        if not (source / file).is_file():
            raise FileNotFoundError(
                f"{name} has no {file}: give the folder of a finished run, with all its files"
            )
    last, best = (read_checkpoint(source / file) for file in (LAST, BEST))
    try:
        check_same(name, last[CARD], identity)
        require_same_content(f"{name} is a run", last[CARD], data, "give the text of that run")
        require_best(source, last)
        records, stopped = last[PAYLOAD]["records"], last[PAYLOAD]["stopped"]
        epochs, steps = records[-1]["epoch"], records[-1]["step"]
        before = last[CARD]["config"]["trainer"]["max_epochs"]
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{name} lacks a part of a finished run ({error!r}): give another one") from error
    if stopped:
        raise ValueError(
            f"{name} was ended by {STEPS}, its schedule or a callback, after {epochs} epochs: only a run that {EPOCHS} "
            "ends has one with more epochs"
        )
    if epochs != before:
        raise ValueError(f"{name} is at {epochs} of {before} epochs: let it finish first, by its own command")
    trainer = identity.config["trainer"]
    for key, made, of in ((EPOCHS, epochs, "epochs"), (STEPS, steps, "updates")):
        bound = trainer.get(key.removeprefix("trainer."))
        if bound not in (None, -1) and bound <= made:
            raise ValueError(f"{name} has {made} {of} already, {key} is {bound}: give more")
    lock = lock_folder(folder)
    try:
        if holds_run(folder):  # by another start of this command
            return
        require_own(identity)
        put_on_record(identity)
        card = make_card(identity.to_dict(), data)
        kept = [(read_checkpoint(path), path.name) for path in sorted(source.glob(SNAPSHOTS))]
        of_the_run = [(each, file) for each, file in kept if each[CARD].get("name") == last[CARD]["name"]]
        # the one that a run goes on from comes last
        for checkpoint, file in (*of_the_run, (best, BEST), (last, LAST)):
            write_checkpoint(checkpoint, folder / file, card)
    finally:
        lock.close()


def holds_run(folder: Path) -> bool:
    return (folder / LAST).exists() or (folder / RESULT).exists()


def check_same(name: str, card: Mapping[str, Any], identity: Identity) -> None:
    """Raise ValueError where the run of a checkpoint is another one than this, apart from its end."""
    if other := other_run(card, identity, except_for=(EPOCHS, STEPS)):
        raise ValueError(
            f"{name} is another run: {other}: give the words of that run with a higher {EPOCHS}, or init_from= to take "
            "its weights alone"
        )
    require_same_code(f"{name} is a run", card, identity, "leave it out to train from the first epoch")
