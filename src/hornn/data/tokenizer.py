"""From lines of text to tokens and back."""

import re
from dataclasses import asdict, dataclass
from typing import Any

from hornn.data.vocabulary import EOS, UNK

UNITS = ("word", "char", "english")

# A word may hold apostrophes, hyphens and dots inside: don't, built-in, os.path, 3-tuple.
_ENGLISH = re.compile(rf"{UNK}|{EOS}|(?:[^\W\d]\w*|\d[\d.,]*(?<=\d)\w*)(?:['.-]\w+)*|\.\.\.|--|\(\)|[^\w\s]")
_OPENING = frozenset("([{")
_CLOSING = frozenset(".,;:!?)]}%") | {"...", "()"}
_PAIRED = frozenset("\"'`")


@dataclass(frozen=True)
class Tokenizer:
    """Cuts a line into tokens.

    unit: `word` splits at white space; `char` takes each character, white space at the line's end dropped;
    `english` gives lower-case words and single punctuation marks; numbers become `N` as in Penn Treebank.
    eos: one `<eos>` after every line. lowercase: lower-case the line first (`english` always does).
    """

    unit: str
    eos: bool
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"the tokenizer's unit is {self.unit!r}; allowed: {', '.join(UNITS)}")

    def tokens(self, line: str) -> list[str]:
        """The tokens of one line, its `<eos>` included if `eos`."""
        if self.unit == "english":
            found = [_normalise(token) for token in _ENGLISH.findall(line)]
        else:
            line = line.lower() if self.lowercase else line
            found = line.split() if self.unit == "word" else list(line.rstrip())
        return [*found, EOS] if self.eos else found

    def join(self, tokens: list[str]) -> str:
        """Readable text; `<eos>` becomes the end of a line."""
        lines: list[list[str]] = [[]]
        for token in tokens:
            if token == EOS:
                lines.append([])
            else:
                lines[-1].append(token)
        if self.unit == "char":
            return "\n".join("".join(line) for line in lines)
        if self.unit == "word":
            return "\n".join(" ".join(line) for line in lines)
        return "\n".join(_punctuate(line) for line in lines)

    def state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Tokenizer":
        return cls(**state)


def _normalise(token: str) -> str:
    """Lower case; in a token that begins with a digit each number becomes N (3-tuple -> N-tuple)."""
    numeric = token[0].isdecimal() or token[0] == "N"
    parts = token.split("-")
    return "-".join(
        "N" if part == "N" or (numeric and part[:1].isdecimal()) else part.lower() for part in parts
    )


def _punctuate(tokens: list[str]) -> str:
    """English tokens with the blanks that a writer would set: none before a comma, none inside quotes."""
    text = ""
    glued = True
    open_quotes: set[str] = set()
    for token in tokens:
        closes = token in _CLOSING or token in open_quotes
        text += token if glued or closes else " " + token
        glued = token in _OPENING or (token in _PAIRED and not closes)
        if token in _PAIRED:
            open_quotes ^= {token}
    return text
