"""Checkpoints: written whole or not at all, read without running code from them, told apart in words."""

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import torch

from hornn.archive import look_through
from hornn.run.identity import BEST
from hornn.shown import first_line
from hornn.writing import LIMITS, replacing

FORMAT = 2
CARD = "hornn"  # the key of the part that says what the checkpoint holds
DEEPEST = 50  # lists and mappings within one another; a run's own are ten deep
REPEATED = 1_000_000  # parts of lists and mappings that are met again, since these stand in several places


class Outlived:
    """A file for torch, whose writer may outlive the file after a signal, and would then end the process."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def write(self, data: bytes) -> int:
        return len(data) if self.file.closed else self.file.write(data)

    def flush(self) -> None:
        """`replacing` does."""


def write_checkpoint(checkpoint: Mapping[str, Any], path: Path, card: Mapping[str, Any]) -> None:
    """Write a checkpoint, with the card of what it holds, whole or not at all.

    Raises OSError, and leaves what was there, where it cannot be written.
    """
    try:
        with replacing(path) as file:
            torch.save({**checkpoint, CARD: dict(card)}, Outlived(file))  # type: ignore[arg-type]
    except (RuntimeError, OSError) as error:  # torch reports a full disk in either way
        # After Ctrl-C or SIGTERM within a file, torch fails to end it.
        if (signalled := error.__context__) and not isinstance(signalled, Exception):
            raise signalled from None
        cause = error if isinstance(error, OSError) else error.__context__
        remedy = LIMITS.get(getattr(cause, "errno", 0), "is the disk full?")
        raise OSError(f"{path} could not be written ({error}): {remedy}") from error


REMEDY = "give the path of a best.ckpt or last.ckpt"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Load a checkpoint of this project onto the CPU.

    Raises FileNotFoundError where there is none, ValueError where it is corrupt, was not written by this
    program, or is of another format version.
    """
    if path.is_dir():
        best = path / BEST
        raise ValueError(f"{path} is a folder: {f'give {best}' if best.is_file() else REMEDY}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}: {REMEDY}")
    try:
        look_through(path)
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except PermissionError:
        raise
    except pickle.UnpicklingError as error:  # torch's own words say how to let the code run
        found = re.search(r"GLOBAL (\S+)", str(error))
        what = f"asks for {found[1]}" if found else "has a content that cannot be read"
        raise ValueError(
            f"checkpoint {path} {what}, and those of this program hold numbers and text alone; nothing of it was run: "
            f"{REMEDY} that this program wrote"
        ) from None
    except Exception as error:  # what a damaged pickle raises cannot be foreseen
        raise ValueError(
            f"checkpoint {path} is corrupt or no checkpoint ({first_line(error)}): {REMEDY}, or copy or train it again"
        ) from error
    require_end(path, checkpoint)
    card = checkpoint.get(CARD) if isinstance(checkpoint, dict) else None
    if not isinstance(card, dict) or "format" not in card:
        raise ValueError(f"checkpoint {path} was not written by this program: it has no '{CARD}' part")
    if type(card["format"]) is not int or card["format"] != FORMAT:
        raise ValueError(
            f"checkpoint {path} has format {card['format']!r:.80}, this program reads format {FORMAT}: train it anew, "
            "or use the version of hornn that wrote it"
        )
    if holds_tensor(card):  # of a stride of 0 it would be a list without end
        raise ValueError(
            f"checkpoint {path} holds a tensor among its settings: {REMEDY} that this program wrote"
        )
    return checkpoint


def require_end(path: Path, checkpoint: Any) -> None:
    """Raise ValueError where lists or mappings lie within themselves, too deep, or in so many places of one another
    that nobody could look through them."""
    met: set[int] = set()
    again = 0
    rest: list[tuple[Any, int]] = [([checkpoint], 0)]
    while rest:
        part, depth = rest.pop()
        again += (1 + len(part)) * (id(part) in met)
        met.add(id(part))
        if depth > DEEPEST or again > REPEATED:
            raise ValueError(
                f"checkpoint {path} holds lists within one another, and no end of them: {REMEDY} that this program "
                "wrote"
            )
        inner = part.values() if isinstance(part, dict) else part
        rest += [(each, depth + 1) for each in inner if isinstance(each, dict | list | tuple)]


def holds_tensor(part: Any) -> bool:
    """Whether there is a tensor in lists and mappings of which `require_end` has found the end."""
    if isinstance(part, dict | list | tuple):
        return any(map(holds_tensor, part.values() if isinstance(part, dict) else part))
    return isinstance(part, torch.Tensor)


def require_plain(path: Path, name: str, weight: torch.Tensor, wanted: torch.dtype = torch.float32) -> None:
    """Raise ValueError for a weight that is of another type than wanted, or holds too few numbers.

    All that is trained is fp32.
    """
    if weight.dtype is not wanted:
        found, kept = (str(each).removeprefix("torch.") for each in (weight.dtype, wanted))
        raise ValueError(
            f"checkpoint {path} holds {name} as {found}, a run keeps it in {kept}: train it anew"
        )
    if (held := weight.untyped_storage().nbytes()) < weight.numel() * weight.element_size():
        raise ValueError(
            f"checkpoint {path} holds {held:,} bytes of {name}, which has {weight.numel():,} numbers: train it anew"
        )


def require_held(path: Path, weights: Mapping[str, torch.Tensor]) -> None:
    """Raise ValueError where more weights share the same numbers than two, as tied weights do."""
    claimed: dict[int, int] = {}
    for name, weight in weights.items():
        storage = weight.untyped_storage()
        place = storage.data_ptr()
        claimed[place] = claimed.get(place, 0) + weight.numel() * weight.element_size()
        if claimed[place] > 2 * storage.nbytes():
            raise ValueError(f"checkpoint {path} holds no numbers of its own for {name}: train it anew")
