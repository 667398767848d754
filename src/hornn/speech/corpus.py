"""Recordings with their words, in a folder laid out as CMU AN4 is."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hornn.data.base import SPLITS

EVERY = 9  # of the training speakers in their names' order, the first of every nine is for validation


class Recording(NamedTuple):
    """One utterance: a WAV file, who speaks, and the words that are said."""

    id: str
    speaker: str
    words: tuple[str, ...]
    path: Path


@contextmanager
def naming(utterance: str) -> Iterator[None]:
    """Say of which utterance a ValueError is that is raised inside."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{utterance}: {error}") from error


class SpeechCorpus(NamedTuple):
    """The recordings of each split, and the files that say how words sound and follow each other.

    dictionary: a word and its phones on each line, `WORD(2)` for a second way to say it. grammar: a language model in
    ARPA's format.
    """

    name: str
    splits: dict[str, list[Recording]]
    dictionary: Path
    grammar: Path


def read_corpus(folder: Path) -> SpeechCorpus:
    """The corpus of a folder with these files, where NAME is any name, `an4` in CMU's:

        etc/NAME_{train,test}.fileids         on each line SPEAKER/UTTERANCE, below any folders, without `.wav`
        etc/NAME_{train,test}.transcription   on each line WORDS (UTTERANCE); <s> and </s> are left out
        etc/NAME.dic, etc/NAME.lm             dictionary, language model
        wav/…/SPEAKER/UTTERANCE.wav

    AN4 has no validation set: the first of every 9 training speakers, in the order of their names, is taken for it
    (9 of 74), with all that they say. Raises ValueError for a folder that lacks a file or a transcript, for an
    utterance without words, that comes twice or has two transcripts, and for a word outside of the dictionary; OSError
    where a file cannot be read.
    """
    etc = folder / "etc"
    lists = sorted(etc.glob("*_train.fileids"))
    if len(lists) != 1:
        found = f"{len(lists)} of them" if lists else "none"
        raise ValueError(
            f"{etc} must hold one list NAME_train.fileids, and has {found}: give data.root and data.name of a "
            "corpus in the layout of CMU AN4"
        )
    name = lists[0].name.removesuffix("_train.fileids")
    dictionary, grammar = etc / f"{name}.dic", etc / f"{name}.lm"
    for path in (dictionary, grammar):
        if not path.is_file():
            raise ValueError(f"{path} is missing: the corpus needs it")
    known = dictionary_words(dictionary)
    everyone = read_split(folder, name, "train", known)
    chosen = set(validation_speakers([recording.speaker for recording in everyone], lists[0]))
    splits = {
        "train": [recording for recording in everyone if recording.speaker not in chosen],
        "valid": [recording for recording in everyone if recording.speaker in chosen],
        "test": read_split(folder, name, "test", known),
    }
    refuse_twins(splits)
    return SpeechCorpus(name, splits, dictionary, grammar)


def read_split(folder: Path, name: str, split: str, known: Collection[str]) -> list[Recording]:
    """The recordings that one list names, in its order. Errors: as in `read_corpus`."""
    fileids, transcription = (
        folder / "etc" / f"{name}_{split}.{kind}" for kind in ("fileids", "transcription")
    )
    words_of = read_transcription(transcription)
    recordings = []
    for line in lines_of(fileids):
        parts = Path(line).parts
        if len(parts) < 2 or ".." in parts or Path(line).is_absolute():
            raise ValueError(f"{fileids}: {line!r} must be a path below wav/ that ends in SPEAKER/UTTERANCE")
        speaker, utterance = parts[-2:]
        path = folder / "wav" / f"{line}.wav"
        if not path.is_file():
            raise ValueError(f"{path} is missing: add it, or take its line out of {fileids}")
        if utterance not in words_of:
            raise ValueError(f"{transcription} has no words for {utterance}: add a line WORDS ({utterance})")
        words = words_of[utterance]
        if not words:
            raise ValueError(
                f"{transcription}: {utterance} has no words: add them, or take it out of {fileids}"
            )
        if strange := [word for word in words if word not in known]:
            if (plain := word_of(strange[0])) in known:
                raise ValueError(
                    f"{transcription}: {strange[0]!r} of {utterance} is a pronunciation: write the word, {plain!r}"
                )
            raise ValueError(
                f"{transcription}: {strange[0]!r} of {utterance} is not in the dictionary: add it to "
                f"{folder / 'etc' / f'{name}.dic'}"
            )
        recordings.append(Recording(utterance, speaker, words, path))
    if not recordings:
        raise ValueError(f"{fileids} names no recordings: give it some")
    return recordings


def read_transcription(path: Path) -> dict[str, tuple[str, ...]]:
    """The words of each utterance.

    Raises ValueError for a line that does not end in (UTTERANCE), and for two lines that say different words of one.
    """
    words_of = dict[str, tuple[str, ...]]()
    for line in lines_of(path):
        said, begun, name = line[:-1].rpartition("(")
        if not begun or line[-1] != ")" or name.split() != [name]:
            raise ValueError(f"{path}: the line {line[:60]!r} must be WORDS (UTTERANCE)")
        words = tuple(word for word in said.split() if word not in ("<s>", "</s>"))
        if words_of.setdefault(name, words) != words:
            raise ValueError(
                f"{path}: two lines have different words for {name}: give each utterance one line, and a name that "
                "no other utterance has, of another speaker either"
            )
    return words_of


def dictionary_words(path: Path) -> set[str]:
    """The words that a dictionary has, `WORD(2)` as WORD. Raises ValueError for a line with a remark of Sphinx's."""
    lines = lines_of(path)
    for line in lines:
        if line.startswith((";;", "##", "# ")):
            raise ValueError(
                f"{path}: the line {line[:60]!r} is a remark, and no word with its phones: take it out"
            )
        if any(phone.startswith((";;", "#")) for phone in line.split()[1:]):
            raise ValueError(
                f"{path}: the line {line[:60]!r} ends in a remark, which would be read as phones: take the remark out"
            )
    return {word_of(line.split()[0]) for line in lines}


def word_of(entry: str) -> str:
    """The word of a dictionary's entry: `WORD(2)` is the second way to say WORD."""
    return re.sub(r"\(\d+\)$", "", entry)


def validation_speakers(speakers: Sequence[str], path: Path) -> list[str]:
    """The first of every `EVERY` speakers. Raises ValueError where none would be left for training."""
    names = sorted(set(speakers))
    if len(names) < 2:
        raise ValueError(
            f"{path} has one speaker, {names[0]!r}: validation takes whole speakers away, so training needs 2 or more"
        )
    return names[::EVERY]


def refuse_twins(splits: dict[str, list[Recording]]) -> None:
    """Raise ValueError for an utterance that comes twice."""
    seen: set[str] = set()
    for split in SPLITS:
        for recording in splits[split]:
            if recording.id in seen:
                raise ValueError(f"the utterance {recording.id} comes twice: give each a name of its own")
            seen.add(recording.id)


def lines_of(path: Path) -> list[str]:
    """The lines of a file that hold something. Raises ValueError for a file that is missing or no UTF-8."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        raise ValueError(f"{path} is missing: the corpus needs it") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error.reason}): save it as such") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
