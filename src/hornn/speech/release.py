"""Getting the published recordings: one archive, checked by its content, complete or not there at all."""

import secrets
import shutil
import tarfile
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import NamedTuple

from hornn.data.download import checksum, receive
from hornn.speech.corpus import SpeechCorpus, read_corpus

LARGEST = 2**30  # bytes that an archive may become
PARTS = ("etc", "wav", "LICENSE")  # of an archive's one folder: what is unpacked


class Release(NamedTuple):
    """A published corpus: an archive (tar) of one folder in AN4's layout, and checksums of what it holds.

    content: of recordings, lists and dictionary (`hornn.speech.prepared.content_of`). grammar: of the language model.
    """

    url: str
    content: str
    grammar: str

    def verify(self, corpus: SpeechCorpus, content: str) -> None:
        """Raise ValueError unless the corpus, whose own checksum is `content`, is the published one."""
        folder = corpus.grammar.parents[1]
        for what, found, expected in (
            ("recordings, lists and dictionary", content, self.content),
            (corpus.grammar.name, checksum(corpus.grammar, "sha256"), self.grammar),
        ):
            if found != expected:
                raise ValueError(
                    f"{folder}: {what} have the checksum {found}, expected {expected}: delete the folder to download "
                    f"it again from {self.url}, or give a corpus of your own another name with data.name"
                )


# CMU AN4 as its authors publish it, at the commit that the address names.
AN4 = Release(
    "https://github.com/cmusphinx/an4/archive/b567d132f43304e70a2b2eca6077f22255311812.tar.gz",
    "sha256:e67c4c59348e1a40e39662939c19bae2e1385dd6e565c8840855dd5ea02c3063",
    "sha256:92f6119aed83271a10307d127b4c87f08dbf3f80ca96e43a83598eb358faa739",
)


def fetch_release(folder: Path, release: Release) -> None:
    """Download and unpack the corpus where `folder` is absent. OSError where it does not come whole."""
    if folder.exists():
        return
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        part.mkdir(parents=True)
        with TemporaryFile() as file:
            receive(release.url, file)
            file.seek(0)
            with tarfile.open(fileobj=file) as archive:
                unpack(archive, part)
        read_corpus(part)
        try:
            part.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
    except (OSError, HTTPException, ValueError, tarfile.TarError, EOFError) as error:
        raise OSError(
            f"cannot download {release.url} ({error}): put the folder {folder.name} into {folder.parent}, or set "
            "data.root to the folder that has the corpora"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files of `PARTS` that an archive has, without its first folder; links and the like are left out.

    Raises ValueError for more bytes than `LARGEST`.
    """
    size = 0
    for member in archive:
        _, *inner = PurePosixPath(member.name).parts
        if not member.isfile() or not inner or inner[0] not in PARTS or ".." in inner:
            continue
        size += member.size
        if size > LARGEST:
            raise ValueError(f"it holds more than {LARGEST:,} bytes")
        path = folder.joinpath(*inner)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = archive.extractfile(member)
        assert content is not None  # of a file
        with content, path.open("wb") as file:
            shutil.copyfileobj(content, file)
