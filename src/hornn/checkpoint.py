"""Checkpoints: written whole or not at all, read without running code from them, told apart in words."""

import os
import pickle
import pickletools
import re
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import torch

from hornn.shown import first_line
from hornn.writing import replacing

FORMAT = 2
CARD = "hornn"  # the key of the part that says what the checkpoint holds
DEEPEST = 50  # lists and mappings within one another; a run's own are ten deep
REPEATED = 1_000_000  # parts of lists and mappings that are met again, since these stand in several places

# The parts of an archive; torch takes either case for a name, so a storage's has no letters that could vary.
PART = re.compile(
    r"[^/]+/(data/[0-9]+|data\.pkl|version|byteorder|\.format_version|\.storage_alignment|\.data/serialization_id)"
)
# What a pickle may name: weights_only=True also lets pass what takes any amount of memory, as bytearray(10**12) does.
NAMED = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_tensor_v2"
    r"|torch (Double|Float|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)Storage"
)
# What a pickle may call, by the letters of its instructions: an OrderedDict that is empty, and a tensor of a storage,
# an offset, a shape and strides that are spelled out each time. So no few instructions make a large thing many times.
INTEGER = r"[JKM\x8a]"
SHAPE = rf"(?:\)|{INTEGER}\x85|{INTEGER}{{2}}\x86|{INTEGER}{{3}}\x87|\({INTEGER}+t)"
EMPTY = r"[chj]\)R"
CALL = re.compile(rf"Q{INTEGER}{SHAPE}{SHAPE}[\x88\x89]{EMPTY}tR|{EMPTY}")
RENAMED = re.compile(
    r"[0-9]+\0"
)  # torch reads a name up to a zero byte: one more copy of a storage for each end
BUILT = 10  # objects that are given attributes, each a copy; a checkpoint has one, its weights
# How torch ends an archive: zip64's record with the size and the place of the list of parts, the place of the record,
# and zip's own record with the length of a comment.
ENDING = struct.Struct("<4s36xQQ4s4xQ4x4s16xH")


def write_checkpoint(checkpoint: Mapping[str, Any], path: Path, card: Mapping[str, Any]) -> None:
    """Write a checkpoint, with the card of what it holds, whole or not at all.

    Raises OSError, and leaves what was there, where it cannot be written.
    """
    try:
        with replacing(path) as file:
            torch.save({**checkpoint, CARD: dict(card)}, file)
    except (RuntimeError, OSError) as error:  # torch reports a full disk in either way
        raise OSError(f"{path} could not be written ({error}): is the disk full?") from error


REMEDY = "give the path of a best.ckpt or last.ckpt"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Load a checkpoint of this project onto the CPU.

    Raises FileNotFoundError where there is none, ValueError where it is corrupt, was not written by this
    program, or is of another format version.
    """
    if path.is_dir():
        best = path / "best.ckpt"
        raise ValueError(f"{path} is a folder: {f'give {best}' if best.is_file() else REMEDY}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}: {REMEDY}")
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            require_stored(file, archive.infolist())
            for part in archive.infolist():
                if part.filename.endswith("/data.pkl"):
                    require_numbers(archive.read(part))
            if damaged := archive.testzip():  # torch does not look at the checksums of what it reads
                raise ValueError(f"{damaged} has another checksum")
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
    return checkpoint


def require_stored(file: IO[bytes], parts: list[zipfile.ZipInfo]) -> None:
    """Raise ValueError unless an archive is as torch writes one, and its parts take no more memory than its file.

    Python finds the list of parts from its end and torch from its place, so both are compared: torch reads what
    Python has looked through.
    """
    file.seek(0)
    start = file.read(4)
    end = file.seek(-ENDING.size, os.SEEK_END)
    found = ENDING.unpack(file.read())
    if start != b"PK\3\4" or found != (b"PK\6\6", found[1], end - found[1], b"PK\6\7", end, b"PK\5\6", 0):
        raise ValueError("it is no archive that torch writes")
    if strange := [part.filename for part in parts if not PART.fullmatch(part.filename)]:
        raise ValueError(f"it holds {strange[0]!r:.80}, which torch does not write")
    if packed := [part.filename for part in parts if part.compress_type != zipfile.ZIP_STORED]:
        raise ValueError(f"{packed[0]} is compressed")
    if (total := sum(part.file_size for part in parts)) > end:
        raise ValueError(f"its parts claim {total:,} bytes in a file of {end + ENDING.size:,}")


def require_numbers(pickled: bytes) -> None:
    """Raise pickle.UnpicklingError for a pickle that makes anything else than tensors, numbers, text and lists, or far
    more of them than it spells out. Nothing is made or called here."""
    codes = []
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            if not NAMED.fullmatch(name := str(argument)):
                raise pickle.UnpicklingError("GLOBAL " + name.replace(" ", "."))
        elif isinstance(argument, str) and RENAMED.match(argument):
            raise pickle.UnpicklingError("it makes copies")
        if not opcode.name.endswith("PUT"):
            codes.append(opcode.code)
    others = CALL.sub("", "".join(codes))
    if "R" in others or others.count("b") > BUILT:
        raise pickle.UnpicklingError("it makes copies")


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
