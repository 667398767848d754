"""The English in the documentation of the running Python: a corpus that is always at hand."""

import ast
import gc
import hashlib
import platform
import re
import warnings
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from hornn.checks import in_home
from hornn.data.content import LIBRARY, library_checksum, library_files
from hornn.data.corpus import Corpus
from hornn.data.text import TextData
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import VocabularyRule

HELD_OUT = 20  # one paragraph in so many is validation text, and as many are test text

_BREAK = re.compile(r"\n\s*\n|\n(?=\s*[*-] )")
_BULLET = re.compile(r"^(?:[*-]|\d+\.|\(\w\))\s+")
_MARKUP = re.compile(r":\w+:`~?([^`]*)`|``([^`]*)``|`([^`']*)['`]|\*\*?([^*]+)\*\*?")
_CODE = re.compile(r">>>|::=|==|^\s*\.\. |[-=~^+|]{3,}|[{}<>|\\]|\w=\w|\w\(\w", re.MULTILINE)
_PLAIN = re.compile(r"^[(\"']?[A-Za-z]+(?:['-][A-Za-z]+)*[\"')]?[.,;:!?]*$")


class PythonDocs(Corpus):
    """The prose in `pydoc_data.topics` and in the standard library's docstrings, parsed but never imported.

    A paragraph is kept if it reads as English: see `is_prose`. None occurs twice, so no split holds text of
    another. A hash of its text decides which split it is in, whatever stands around it. Other Python versions
    have other texts, hence the version in `identity`.
    """

    name = "pydoc"

    def __init__(self, rule: VocabularyRule, cache_dir: Path) -> None:
        self.cache_dir = cache_dir
        self.tokenizer = Tokenizer("english", eos=True)
        self.rule = rule

    @property
    def path(self) -> Path:
        return LIBRARY

    def fetch(self) -> None:
        """Nothing to do: the text comes with Python."""

    def identity(self) -> dict[str, Any]:
        return {"checksum": library_checksum(self.cache_dir), "python_version": platform.python_version()}

    def tokens(self, split: str) -> Iterator[list[str]]:
        yield from self._paragraphs[split]

    @cached_property
    def _paragraphs(self) -> dict[str, list[list[str]]]:
        splits: dict[str, list[list[str]]] = {split: [] for split in self.splits}
        seen = set()
        for text in self._documentation():
            for paragraph in prose(text):
                tokens = self.tokenizer.tokens(paragraph)
                digest = hashlib.sha256("\n".join(tokens).encode()).digest()
                if digest not in seen:
                    seen.add(digest)
                    place = int.from_bytes(digest[:8]) % HELD_OUT
                    splits[{0: "valid", 1: "test"}.get(place, "train")].append(tokens)
        return splits

    @staticmethod
    def _documentation() -> list[str]:
        """Of all files. The garbage collector rests: of a syntax tree's many objects it would find none to free."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return [text for _, path in library_files() for text in documentation(path)]
        finally:
            if collects:
                gc.enable()


def documentation(path: Path) -> Iterator[str]:
    """The docstrings of a source file and the topics of `pydoc_data/topics.py`; none if unparsable."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign) and path.match("pydoc_data/topics.py"):
            yield from ast.literal_eval(node.value).values()


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The module and its statements in the order of `ast.walk`, without expressions: they hold no docstring."""
    nodes = deque([tree])
    while nodes:
        node = nodes.popleft()
        for block in ("body", "handlers", "orelse", "finalbody", "cases"):
            nodes += getattr(node, block, ())
        yield node


def prose(text: str) -> Iterator[str]:
    """The paragraphs of a documentation text that read as English, each on one line and without markup."""
    for paragraph in _BREAK.split(text):
        line = _BULLET.sub("", " ".join(paragraph.split()))
        line = _MARKUP.sub(lambda match: next(filter(None, match.groups()), ""), line)
        if not _CODE.search(paragraph) and is_prose(line):
            yield line


def is_prose(line: str) -> bool:
    """Whether a line has at least five words, 75 % of them plain; a capital first or a full stop (.:!?) last."""
    words = line.split()
    plain = sum(_PLAIN.match(word) is not None for word in words)
    return len(words) >= 5 and plain >= 0.75 * len(words) and (line[0].isupper() or line[-1] in ".:!?")


def build_data(
    *,
    root: str,
    cache_dir: str,
    batch_size: int = 20,
    seq_len: int = 30,
    eval_batch_size: int = 20,
    min_count: int = 2,
    max_size: int | None = None,
) -> TextData:
    """Python's documentation; the keys are explained in conf/data/pydoc.yaml. `root` is not used."""
    corpus = PythonDocs(VocabularyRule(min_count, max_size), in_home(cache_dir))
    return TextData(corpus, batch_size, seq_len, eval_batch_size, cache_dir)
