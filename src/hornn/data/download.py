"""Getting published files: checked before they are used, complete or not there at all."""

import hashlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.request import urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from hornn.writing import replacing

TIMEOUT = 30.0  # seconds without an answer
BLOCK = 1 << 20


def checksum(path: Path, algorithm: str) -> str:
    """`algorithm:hexdigest` of a file, the form in which expected checksums are written too."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return f"{algorithm}:{digest.hexdigest()}"


def verify(path: Path, expected: str, remedy: str) -> None:
    """Raise ValueError if the file's contents are not the published ones."""
    found = checksum(path, expected.partition(":")[0])
    if found != expected:
        raise ValueError(
            f"{path} ({path.stat().st_size:,} bytes) has the checksum {found}, expected {expected}: {remedy}"
        )


def fetch(path: Path, url: str, expected: str) -> None:
    """Make `path` the published file: check what is there, download what is not.

    ValueError: a file is there but has another checksum. OSError: it could not be downloaded whole.
    """
    if path.exists():
        verify(path, expected, f"delete it to download it again from {url}")
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            _download(url, file, expected)
    except (OSError, HTTPException, ValueError) as error:
        raise OSError(
            f"cannot download {url} ({error}): put {path.name} into {path.parent}, "
            "or set data.root to the folder that has the corpora"
        ) from error


def _download(url: str, file: IO[bytes], expected: str) -> None:
    digest = hashlib.new(expected.partition(":")[0], usedforsecurity=False)
    received = receive(url, file, digest.update)
    found = f"{digest.name}:{digest.hexdigest()}"
    if found != expected:
        raise ValueError(f"its {received:,} bytes have the checksum {found}, expected {expected}")


def receive(url: str, file: IO[bytes], update: Callable[[bytes], None] = lambda block: None) -> int:
    """Write what a URL holds, under a bar, and return the number of bytes. Raises ValueError where some are missing."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with (
        urlopen(url, timeout=TIMEOUT) as response,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        length = int(response.headers.get("Content-Length") or 0) or None
        task = progress.add_task(url.rpartition("/")[2], total=length)
        received = 0
        while block := response.read(BLOCK):
            file.write(block)
            update(block)
            received += len(block)
            progress.update(task, completed=received)
    if length and received < length:
        raise ValueError(f"only {received:,} of {length:,} bytes came")
    return received
