"""From lines of text to tokens and back."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hornn.checks import require_choice, require_truth
from hornn.data.vocabulary import EOS, UNK

UNITS = ("word", "char", "english")

# A word may hold apostrophes, hyphens and dots inside: don't, built-in, os.path, 3-tuple.
_ENGLISH = re.compile(rf"{UNK}|{EOS}|(?:[^\W\d]\w*|\d[\d.,]*(?<=\d)\w*)(?:['.-]\w+)*|\.\.\.|--|\(\)|[^\w\s]")
_ASCII_SPACE = " \t\n\v\f\r"
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
        require_choice("the tokenizer's unit", self.unit, UNITS)
        require_truth(eos=self.eos, lowercase=self.lowercase)

    def tokens(self, line: str) -> list[str]:
        """The tokens of one line, its `<eos>` included if `eos`."""
        tokens = self.cut(line.rstrip())
        return [*tokens, EOS] if self.eos else tokens

    def cut(self, text: str) -> list[str]:
        """The tokens of the beginning of a line, which may end anywhere in a prompt, and else where `whole` says."""
        if self.unit == "english":
            return [_normalise(token) for token in _ENGLISH.findall(text)]
        text = text.lower() if self.lowercase else text
        return text.split() if self.unit == "word" else list(text)

    def blocks(self, pieces: Iterable[tuple[str, bool]]) -> Iterator[tuple[list[str], bool]]:
        """The tokens of lines that come in pieces, each with whether its line ends there, as `tokens` gives them."""
        held: list[str] = []  # of a line that is not whole yet
        for piece, ends in pieces:
            if ends:
                yield self.tokens("".join([*held, piece])), True
                held = []
            elif length := self.whole(piece):
                yield self.cut("".join([*held, piece[:length]])), False
                held = [piece[length:]]
            else:
                held.append(piece)

    def whole(self, piece: str) -> int:
        """How many characters of a piece, with what stands before them, have tokens that no later text changes.

        White space at the piece's end does not count: it may be the line's. Lower case depends on the letters around
        (a sigma at the end of a word is another one), as far as to white space or a letter without case.
        """
        if self.unit == "char" and not self.lowercase:
            return len(piece.rstrip())
        place = len(piece)
        while place and not (
            piece[place - 1].isspace() or (self.unit == "char" and _is_caseless(piece[place - 1]))
        ):
            place -= 1
        return len(piece[:place].rstrip())

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


class ArpaTokenizer(Tokenizer):
    """Cuts a line at ASCII white space alone, as readers of ARPA files do: a no-break space is part of a word."""

    def __init__(self) -> None:
        super().__init__("word", eos=True)

    def tokens(self, line: str) -> list[str]:
        return [*self.cut(line), EOS]

    def cut(self, text: str) -> list[str]:
        return re.findall(f"[^{_ASCII_SPACE}]+", text)

    def whole(self, piece: str) -> int:
        return max(piece.rfind(space) for space in _ASCII_SPACE) + 1


def _is_caseless(character: str) -> bool:
    """Whether a character is a letter of a script without capitals."""
    return unicodedata.category(character) == "Lo" and not character.islower()


def _normalise(token: str) -> str:
    """Lower case; in a token that begins with a digit, or with N, each number becomes N (3-tuple -> N-tuple)."""
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
