"""A checkpoint's archive, looked through before torch reads it: no file takes memory out of proportion to its size."""

import os
import pickle
import pickletools
import re
import struct
import zipfile
from pathlib import Path
from typing import IO

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
# Torch reads a name up to a zero byte: one more copy of a storage for each end.
RENAMED = re.compile(r"[0-9]+\0")
BUILT = 10  # objects that are given attributes, each a copy; a checkpoint has one, its weights
# How torch ends an archive: zip64's record with the size and the place of the list of parts, the place of the record,
# and zip's own record with the length of a comment.
ENDING = struct.Struct("<4s36xQQ4s4xQ4x4s16xH")


def look_through(path: Path) -> None:
    """Raise ValueError or pickle.UnpicklingError unless a file is an archive of torch's that is whole and bounded.

    Bounded: it makes tensors, numbers, text and lists alone, in proportion to its size. zipfile.BadZipFile where it is
    no archive.
    """
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        require_stored(file, archive.infolist())
        for part in archive.infolist():
            if part.filename.endswith("/data.pkl"):
                require_plain_values(archive.read(part))
        if damaged := archive.testzip():  # torch does not look at the checksums of what it reads
            raise ValueError(f"{damaged} has another checksum")


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


def require_plain_values(pickled: bytes) -> None:
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
