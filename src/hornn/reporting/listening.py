"""What the models of a table heard in a few utterances, word by word, and the recordings that belong to them.

A result of speech keeps the words (`hornn.speech.data`). Recordings lie below the kept results, in a folder for each
corpus with its licence: tables/recordings/<corpus>/<utterance>.flac. None is looked for anywhere else.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hornn.reporting.lines import Line
from hornn.reporting.tables import Table
from hornn.result import LETTERS, SAMPLES, UTTERANCES
from hornn.sweep.record import RECORDINGS
from hornn.writing import replacing

LICENCE = "LICENSE"
KINDS = (".flac", ".wav")
WORDS = 60  # of an utterance that are shown
GRAMMARS = {"shipped": "by the shipped grammar", "bigram": "by the bigram of the training transcripts"}

Pairs = list[tuple[str, str]]  # a word that was said and one that was heard, "" where there is none


class Recording(NamedTuple):
    """Where a recording and its licence are; empty: there is none."""

    address: str = ""
    licence: str = ""


Recordings = Mapping[tuple[str, str], Recording]  # by corpus and utterance


class Heard(NamedTuple):
    """What one run heard in an utterance, by the words of `GRAMMARS`."""

    id: str
    said: str
    recording: Recording
    by_grammar: dict[str, Pairs]


class Utterance(NamedTuple):
    """An utterance, and what the best run of each row heard in it."""

    said: str
    recording: Recording
    rows: list[tuple[Line, Heard]]


def find_recordings(results: Path) -> dict[tuple[str, str], Path]:
    paths = sorted((results / "tables" / RECORDINGS).glob("*/*"))
    return {(path.parent.name, path.stem): path for path in paths if path.suffix in KINDS}


def copy_recordings(
    results: Path, tables: Iterable[Table], out: Path
) -> tuple[dict[tuple[str, str], Recording], list[Path]]:
    """Copy to `out` the recordings that results of these tables speak of, and the licences beside them.

    The addresses of the recordings below `out`, and the files written.
    """
    kept = find_recordings(results)
    asked = {
        (corpus_of(run.result), utterance["id"])
        for table in tables
        for line in table.lines
        for run in line.runs
        for utterance in run.result.get(UTTERANCES, ())
    }
    paths = {key: kept[key] for key in asked & kept.keys()}
    licences = {path.with_name(LICENCE) for path in paths.values()}
    written = []
    for source in sorted({*paths.values(), *(path for path in licences if path.exists())}):
        copy = out / RECORDINGS / source.parent.name / source.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        with replacing(copy) as file:
            file.write(source.read_bytes())
        written.append(copy)
    return {key: recording_of(path) for key, path in paths.items()}, written


def recording_of(path: Path) -> Recording:
    """The addresses below a report of what was copied there."""
    folder = f"{RECORDINGS}/{path.parent.name}"
    licensed = path.with_name(LICENCE).exists()
    return Recording(f"{folder}/{path.name}", f"{folder}/{LICENCE}" if licensed else "")


def corpus_of(result: Mapping[str, Any]) -> str:
    return str((result.get("corpus") or {}).get("name"))


def heard_by(result: Mapping[str, Any], recordings: Recordings) -> list[Heard]:
    """What a run heard; as much of it as the page has room for, since a stranger's file may hold more."""
    return [
        Heard(
            utterance["id"],
            " ".join(words_of(utterance["said"])),
            recordings.get((corpus_of(result), utterance["id"]), Recording()),
            {
                words: align(words_of(utterance["said"]), words_of(utterance["heard"][grammar]))
                for grammar, words in GRAMMARS.items()
                if grammar in utterance["heard"]
            },
        )
        for utterance in result.get(UTTERANCES, ())[:SAMPLES]
    ]


def words_of(text: str) -> list[str]:
    return text[:LETTERS].split()[:WORDS]


def utterances_of(table: Table, recordings: Recordings) -> list[Utterance]:
    """The utterances that rows of a table speak of; of each row the seed that is best on validation."""
    found: dict[tuple[str, str], Utterance] = {}
    for line in table.lines:
        for heard in heard_by(line.best.result, recordings) if line.best else ():
            empty = Utterance(heard.said, heard.recording, [])
            found.setdefault((heard.id, heard.said), empty).rows.append((line, heard))
    return list(found.values())


def align(said: Sequence[str], heard: Sequence[str]) -> Pairs:
    """The words side by side, with as few differences as can be.

    d(i, j) = min(d(i-1, j-1) + [said_i is not heard_j],   d(i-1, j) + 1,   d(i, j-1) + 1)

    Source: Levenshtein 1966.
    """
    d = [[max(i, j) if 0 in (i, j) else 0 for j in range(len(heard) + 1)] for i in range(len(said) + 1)]
    for i, word in enumerate(said, start=1):
        for j, other in enumerate(heard, start=1):
            d[i][j] = min(d[i - 1][j - 1] + (word != other), d[i - 1][j] + 1, d[i][j - 1] + 1)
    pairs, i, j = list[tuple[str, str]](), len(said), len(heard)
    while i or j:
        if i and j and d[i][j] == d[i - 1][j - 1] + (said[i - 1] != heard[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((said[i], heard[j]))
        elif i and d[i][j] == d[i - 1][j] + 1:
            i -= 1
            pairs.append((said[i], ""))
        else:
            j -= 1
            pairs.append(("", heard[j]))
    return pairs[::-1]
