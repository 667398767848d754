"""ARPA files: n-gram models in the text format that SRILM, KenLM and their like exchange.

    \\data\\
    ngram 1=4
    ngram 2=3

    \\1-grams:
    log10 p(w) <tab> w <tab> log10 gamma(w)
    ...
    \\2-grams:
    log10 p(v w) <tab> v w
    ...
    \\end\\

The highest order has no back-off weights; in other orders a weight that is left out is 1. The begin mark is `<s>`, with
the probability 0 written as -99. The word that ends a sentence is `</s>` in a file and `<eos>` in our vocabularies.
"""

import codecs
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

import numpy as np

from hornn.baselines.ngram import TOLERANCE, BackoffModel, Level, rows_of
from hornn.data.vocabulary import EOS
from hornn.writing import write_atomically

BEGIN = "<s>"
END = "</s>"
DATA = b"\\data\\"  # the line with which the header begins; a byte order mark may precede it
GREATEST = 30  # log10 of a back-off weight, which no estimate comes near; sums of them stay finite
LONGEST = 100  # words of an n-gram; each order looks through all shorter ones
NEVER = -99.0  # log10 of the probability 0 of `<s>`
CHUNK = 100_000  # n-grams that are turned into text at once


class ArpaModel(BackoffModel):
    """The n-grams of an ARPA file: equations and keys of BackoffModel. It cannot be fitted."""

    def fit(self, train: np.ndarray, valid: np.ndarray) -> None:
        raise ValueError(
            "the n-grams of an ARPA file are estimated already: score with them, or fit model=kn"
        )


def write_arpa(path: Path, model: BackoffModel, words: Sequence[str]) -> None:
    """Write a fitted model, whose ids mean `words`; a file that is there is replaced once the new one is complete.

    Raises what `arpa_lines` and `write_atomically` raise.
    """
    write_atomically(path, arpa_lines(model, words))


def arpa_lines(model: BackoffModel, words: Sequence[str]) -> Iterator[str]:
    """The lines of an ARPA file of a fitted model, whose ids mean `words`. Probabilities have nine digits.

    ValueError: not V words, a word that is empty, repeated or `<s>`, or one with white space in it, such as the blank
    among letters, which no ARPA file can hold.
    """
    names = [END if word == EOS else word for word in words]
    if len(names) != model.vocab_size:
        raise ValueError(
            f"{len(names):,} words for a model of {model.vocab_size:,}: give the words that it was fitted on"
        )
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"the word {twice!r} comes twice in an ARPA file, where {EOS} is {END}: rename one")
    for name in names:
        if name == BEGIN or name.encode().split() != [name.encode()]:
            raise ValueError(
                f"an ARPA file cannot hold the word {name!r}: {BEGIN} is the begin mark, and white space separates "
                "words; train on a text that writes it otherwise, blanks by sed 's/[[:blank:]]/_/g' FILE > NEW"
            )
    return _all_lines(model, [*names, BEGIN])


def _all_lines(model: BackoffModel, names: list[str]) -> Iterator[str]:
    yield "\\data\\\n"
    yield from (f"ngram {n}={len(level.p)}\n" for n, level in enumerate(model.levels, start=1))
    for n in range(1, model.order + 1):
        yield f"\n\\{n}-grams:\n"
        yield from _lines(model, n, names)
    yield "\n\\end\\\n"


def _lines(model: BackoffModel, n: int, names: list[str]) -> Iterator[str]:
    """The entries of order n in the order of their keys."""
    level = model.levels[n - 1]
    for start in range(0, len(level.p), CHUNK):
        part = slice(start, start + CHUNK)
        with np.errstate(divide="ignore"):
            log_p = np.maximum(np.log10(level.p[part]), NEVER).tolist()
        rows = np.arange(start, start + len(log_p))
        texts = (" ".join([names[i] for i in ids]) for ids in model.spelled(n, rows).tolist())
        if n == model.order:
            yield from (f"{p:.9g}\t{text}\n" for p, text in zip(log_p, texts, strict=True))
        else:
            log_gamma = np.log10(level.gamma[part]).tolist()
            yield from (
                f"{p:.9g}\t{text}\t{g:.9g}\n" for p, text, g in zip(log_p, texts, log_gamma, strict=True)
            )


def read_arpa(path: Path) -> tuple[list[str], ArpaModel]:
    """The words of an ARPA file, and the model whose ids are places in that list.

    `</s>`, if it is there, becomes `<eos>` and ends sentences; `<s>` is none of the words. What precedes \\data\\
    is skipped, as the format has it.
    FileNotFoundError: no such file. ValueError, with the number of the line: no ARPA file, one that breaks off
    before \\end\\, entries that are malformed, come twice, hold unknown words, begin with words that are no entry
    themselves, or are more or fewer than the header says. ValueError, too, where the probabilities of the words, or of
    the words after one of 50 sampled contexts, do not sum to 1 within 0.001.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no ARPA file {path}: give the path of an existing one")
    with path.open("rb") as file:
        words, model = parse_arpa(path, file)
    _require_sums(path, words, model)
    return words, model


def parse_arpa(path: Path | str, file: BinaryIO) -> tuple[list[str], ArpaModel]:
    """What an open ARPA file holds, as `read_arpa` gives it, without a look at the sums. path: for messages."""
    return _read(_Lines(path, file))


class _Lines:
    """The lines of a file, and the number of the last one."""

    def __init__(self, path: Path | str, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        self.number = 0

    def read(self) -> bytes:
        line = self.file.readline()
        self.number += 1
        if not line.endswith(b"\n") and line.strip() != b"\\end\\":
            self.fail("the file breaks off before \\end\\: it is truncated, write or copy it again")
        return line.strip()

    def fail(self, what: str, number: int | None = None) -> NoReturn:
        raise ValueError(f"{self.path}, line {self.number if number is None else number}: {what}")


class _Section(NamedTuple):
    """The entries of one order as the file has them."""

    first: int  # number of the first one's line
    p: np.ndarray  # (n-grams,)
    gamma: np.ndarray  # (n-grams,)
    words: np.ndarray  # (n-grams, n): ids


def _read(lines: _Lines) -> tuple[list[str], ArpaModel]:
    sizes, line = _header(lines)
    index: dict[bytes, int] = {}
    words: list[str] = []
    levels: list[Level] = []
    for n, size in enumerate(sizes, start=1):
        _expect(lines, line, f"\\{n}-grams:")
        section, line = _section(lines, n, len(sizes), index)
        if len(section.p) != size:
            lines.fail(
                f"the header says ngram {n}={size}, there are {len(section.p)}: write or copy it again"
            )
        if n == 1:
            words, level = _unigrams(lines, section, index)
        else:
            level = _ngrams(lines, section, levels, len(words))
        levels.append(level)
    _expect(lines, line, "\\end\\")
    levels[-1] = levels[-1]._replace(gamma=np.zeros(0))
    model = ArpaModel(len(words), words.index(EOS) if EOS in words else None, len(sizes))
    model.levels = levels
    return words, model


def _header(lines: _Lines) -> tuple[list[int], bytes]:
    """How many n-grams of each order there are, and the line that follows."""
    for line in iter(lines.file.readline, b""):
        lines.number += 1
        if line.removeprefix(codecs.BOM_UTF8).strip() == DATA:
            break
    else:
        lines.fail("the file ends without a line \\data\\: it is no ARPA file, or an empty one")
    sizes: list[int] = []
    while line := lines.read():
        if line.startswith(b"\\"):
            break
        entry = re.fullmatch(rb"ngram\s+(\d{1,18})\s*=\s*(\d{1,18})", line)
        if not entry or int(entry[1]) != len(sizes) + 1:
            lines.fail(f"expected 'ngram {len(sizes) + 1}=COUNT', found {_shown(line)}")
        sizes.append(int(entry[2]))
        if len(sizes) > LONGEST:
            lines.fail(f"it holds n-grams of more than {LONGEST} words, and no more are read")
    if not sizes or not sizes[0]:
        lines.fail("the header promises no words: it needs a line 'ngram 1=COUNT', the count 1 or more")
    return sizes, line


def _expect(lines: _Lines, line: bytes, mark: str) -> None:
    """From `line` on, the first line that is not blank has to be the mark."""
    while not line:
        line = lines.read()
    if line != mark.encode():
        lines.fail(f"expected {mark}, found {_shown(line)}")


def _section(lines: _Lines, n: int, order: int, index: dict[bytes, int]) -> tuple[_Section, bytes]:
    """The entries up to a blank line or a mark, and that line. Order 1 fills the index, the others look words up."""
    first = lines.number + 1
    log_p, log_gamma, ids = array("d"), array("d"), array("i")
    while (line := lines.read()) and not line.startswith(b"\\"):
        fields = line.split()
        try:
            log_p.append(float(fields[0]))
            log_gamma.append(float(fields[n + 1]) if len(fields) > n + 1 else 0.0)
            numbers = (fields[0], *fields[n + 1 :])
            well_formed = n < len(fields) <= n + 1 + (n < order) and b"_" not in b"".join(numbers)
        except ValueError:
            well_formed = False
        if not well_formed or not (log_p[-1] <= 0 and log_gamma[-1] < GREATEST):
            form = "1 word" if n == 1 else f"{n} words"
            form += f" and perhaps log10 of a back-off weight (below {GREATEST})" if n < order else ""
            lines.fail(f"expected log10 of a probability (0 or less), {form}, found {_shown(line)}")
        if n == 1 and index.setdefault(fields[1], len(index)) != len(log_p) - 1:
            lines.fail(f"the word {_shown(fields[1])} comes twice")
        try:
            ids.extend([index[word] for word in fields[1 : n + 1]])
        except KeyError as error:
            lines.fail(f"the word {_shown(error.args[0])} is none of the 1-grams")
    words = np.array(ids, dtype=np.int64).reshape(-1, n)
    return _Section(first, 10.0 ** np.array(log_p), 10.0 ** np.array(log_gamma), words), line


def _unigrams(lines: _Lines, section: _Section, index: dict[bytes, int]) -> tuple[list[str], Level]:
    """The words, and their entries; `index` gives `<s>` the id after theirs, where BackoffModel has it."""
    begin = index.get(BEGIN.encode())
    names = [name for name in index if name != BEGIN.encode()]
    words: list[str] = []
    for name in names:
        try:
            words.append(name.decode("utf-8"))
        except UnicodeDecodeError:
            lines.fail(f"the word {name!r} is not UTF-8: convert the file", section.first + index[name])
    if {EOS, END} <= set(words):
        lines.fail(f"the words {EOS} and {END} are both there and mean the same: rename one", section.first)
    order = np.delete(np.arange(len(index)), [] if begin is None else begin)
    index.update({name: i for i, name in enumerate(names)})
    gamma = 1.0
    if begin is not None:
        index[BEGIN.encode()] = len(names)
        gamma = float(section.gamma[begin])
    p, gammas = np.append(section.p[order], 0.0), np.append(section.gamma[order], gamma)
    return [EOS if word == END else word for word in words], Level(np.arange(len(p)), p, gammas)


def _ngrams(lines: _Lines, section: _Section, levels: list[Level], vocab_size: int) -> Level:
    """The entries of an order above 1 in the order of their keys."""
    width = vocab_size + 1
    if (wrong := (section.words[:, 1:] == vocab_size).any(axis=1)).any():
        lines.fail(f"{BEGIN} can only be the first word", section.first + int(np.argmax(wrong)))
    row = np.zeros(len(section.p), dtype=np.int64)
    for level, word in zip(levels, section.words.T, strict=False):
        row = np.where(row >= 0, rows_of(level.keys, row * width + word), -1)
    if (wrong := row < 0).any():
        lines.fail(
            f"the first {len(levels)} words are no entry of order {len(levels)}",
            section.first + int(np.argmax(wrong)),
        )
    keys = row * width + section.words[:, -1]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    if (twice := np.flatnonzero(np.diff(keys) == 0)).size:
        lines.fail("this entry comes twice", section.first + int(order[twice + 1].min()))
    return Level(keys, section.p[order], section.gamma[order])


def _require_sums(path: Path, words: list[str], model: ArpaModel) -> None:
    if wrong := model.wrong_sum():
        context, total = wrong
        words_before = " ".join([*words, BEGIN][i] for i in context)
        which = f"after {words_before!r}" if words_before else "of the words"
        raise ValueError(
            f"{path}: the probabilities {which} sum to {total:.6g}, not to 1 within {TOLERANCE}: "
            "the file is damaged or its model is not normalised; estimate it again"
        )


def _shown(text: bytes) -> str:
    """At most 80 bytes of a line for a message."""
    return repr(text[:80].decode("utf-8", "replace") + "..." * (len(text) > 80))
