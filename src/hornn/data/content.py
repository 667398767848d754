"""What a text that nobody published holds, as a checksum: part of the name of a run on it. No torch here."""

import hashlib
import json
import os
import platform
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hornn.checks import in_home
from hornn.data.download import checksum
from hornn.writing import write_atomically

PYTHON = "python"  # the documentation of the running Python, in place of keys of files
FOLDER = "folder"  # all files below root/name
LIBRARY = Path(sysconfig.get_path("stdlib"))
MEMORY = "checksums.json"  # in the folder of tokens
MOST_LINKS = 1000  # to folders, each way to one counted
CHANGED = "changed while it was read: give the command again once the file is written"
MANY = 2**20  # bytes from which on a file's checksum is remembered
SKIPPED = {
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "turtledemo",
    "__pycache__",
}


def content_of(text: str | Sequence[str], data: Mapping[str, Any]) -> str:
    """The checksum of a corpus: the files that `data` names under the keys `text`, a folder, or Python's sources.

    Raises FileNotFoundError for a file, or a folder, that is not there.
    """
    folder = in_home(data["cache_dir"])
    if text == PYTHON:
        return library_checksum(folder)
    if text == FOLDER:
        return folder_checksum(in_home(data["root"]) / data["name"], folder)
    paths = [in_home(str(data[key])) for key in text]
    for key, path in zip(text, paths, strict=True):
        require_text_file(f"data.{key}", path)
    return checksum_of_texts(file_checksum(path, folder) for path in paths)


def checksum_of_texts(checksums: Iterable[str]) -> str:
    """The checksum of a corpus whose files have these ones."""
    return f"sha256:{hashlib.sha256(''.join(checksums).encode()).hexdigest()}"


def require_text_file(key: str, path: Path) -> None:
    """Raise ValueError where the path that a key names is no file, FileNotFoundError where nothing is there."""
    if path.is_dir():
        raise ValueError(f"{key}={path} is a folder: give the path of a text file")
    if not path.is_file() and path.exists():
        raise ValueError(
            f"{key}={path} is a pipe or a device, and a corpus is read several times: write its text into a file first"
        )
    if not path.is_file():
        raise FileNotFoundError(f"there is no text file {key}={path}: give the path of an existing one")


def file_checksum(path: Path, folder: Path) -> str:
    """The SHA-256 of a file. A big one is not read again while its `state_of` stays the same."""
    if path.stat().st_size < MANY:
        return checksum(path, "sha256")
    return remembered(folder, str(path.absolute()), state_of(path), lambda: checksum(path, "sha256"))


def state_of(path: Path) -> str:
    """The size of a file, the time of its content, which a copy may keep, and of its entry, which is always new."""
    status = path.stat()
    return f"{status.st_size} bytes, {status.st_mtime_ns}, {status.st_ctime_ns}"


def library_checksum(folder: Path) -> str:
    """The SHA-256 of the standard library's sources and of the version of the running Python, likewise."""
    return checksum_of_all(LIBRARY, library_files(), folder, platform.python_version())


def folder_checksum(corpus: Path, folder: Path) -> str:
    """The SHA-256 of all files of a corpus with their names, likewise."""
    if not corpus.is_dir():
        raise FileNotFoundError(
            f"there is no folder {corpus}: give data.root and data.name of an existing one"
        )
    found = sorted((path.relative_to(corpus).as_posix(), path) for path in files_below(corpus))
    return checksum_of_all(corpus.absolute(), found, folder)


def files_below(folder: Path) -> Iterator[Path]:
    """All files of a folder and of the folders in it; links are followed, but not to a folder that leads to them.

    Raises ValueError where links to folders are followed too often: folders that link to each other have no end.
    Raises OSError for a folder that cannot be read, and for a link that leads nowhere.
    """

    def fail(error: OSError) -> None:
        raise error

    followed = 0
    for place, folders, names in os.walk(folder, followlinks=True, onerror=fail):
        here = Path(place)
        followed += here.is_symlink()
        if followed > MOST_LINKS:
            raise ValueError(
                f"{folder} has links that lead to folders in more than {MOST_LINKS:,} ways: put the files there instead"
            )
        around = {path.resolve() for path in (here, *here.parents)}
        folders[:] = [name for name in folders if (here / name).resolve() not in around]
        for path in (here / name for name in names):
            if path.is_symlink() and not path.exists():
                raise FileNotFoundError(f"{path} is a link that leads nowhere: mend it, or remove it")
            if path.is_file():
                yield path


def checksum_of_all(place: Path, files: Sequence[tuple[str, Path]], folder: Path, version: str = "") -> str:
    states = [f"{name} {state_of(path)}" for name, path in files]
    state = hashlib.sha256("\n".join([version, *states]).encode(errors="surrogateescape")).hexdigest()

    def read() -> str:
        digest = hashlib.sha256(version.encode())
        for name, path in files:
            digest.update(name.encode(errors="surrogateescape") + b"\0" + path.read_bytes())
        return f"sha256:{digest.hexdigest()}"

    return remembered(folder, str(place), state, read)


def library_files() -> list[tuple[str, Path]]:
    """The standard library's source files by relative name, in an order that no file system decides."""
    found = []
    for folder, folders, names in os.walk(LIBRARY):
        folders[:] = [name for name in folders if name not in SKIPPED]
        found += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted((path.relative_to(LIBRARY).as_posix(), path) for path in found if path.is_file())


def remembered(folder: Path, key: str, state: str, read: Callable[[], str]) -> str:
    """What `read` gave when `key` was in this state before, by the folder's memory; else what it gives now."""
    path = folder / MEMORY
    if (known := read_memory(path).get(key)) and known[0] == state:
        return str(known[1])
    found = read()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({**read_memory(path), key: [state, found]}, indent=1) + "\n")
    except OSError:
        pass  # the text is read again next time; a run that needs the folder says what is wrong with the folder
    return found


def read_memory(path: Path) -> dict[str, list[str]]:
    """Key -> its state and its checksum; nothing where the file is absent or damaged."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return {key: [state, found] for key, (state, found) in known.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
