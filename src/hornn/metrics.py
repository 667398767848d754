"""Units of a model's score. No torch here: reports import this."""

import math
from typing import NamedTuple


def perplexity(nats: float) -> float:
    """exp of the mean negative log-likelihood per token in nats; inf where that overflows."""
    return math.exp(nats) if nats < 700 else math.inf


def bits(nats: float) -> float:
    """A mean negative log-likelihood in bits: per character when a token is a character."""
    return nats / math.log(2)


class Units(NamedTuple):
    """What a mean of -ln P is a mean over, and how a person reads it.

    target: one of the things that are predicted, in a word. key: of the score by which runs are compared, as in
    `valid_ppl`; score: the name of what is shown of it; digits: the decimals shown. in_bits: whether a perplexity is
    shown in bits. accuracy: whether a share of right predictions is measured beside it.
    """

    target: str
    key: str
    score: str
    digits: int
    in_bits: bool = False
    accuracy: bool = False

    def read(self, nats: float) -> float:
        """A mean of -ln P as a person reads it."""
        return perplexity(nats) if self.key == "ppl" else nats

    def show(self, value: float, digits: int | None = None) -> str:
        """A score under `key`, as `figures` has it, in the unit and with the decimals that a person reads."""
        shown = bits(math.log(value)) if self.in_bits else value
        return f"{shown:.{self.digits if digits is None else digits}f}"

    def figures(self, split: str, nats: float, accuracy: float | None = None) -> dict[str, float]:
        """The mean and what a person reads, with bits and the accuracy where there are any, by the keys of a result."""
        in_bits = {f"{split}_bpc": bits(nats)} if self.in_bits else {}
        measured = {} if accuracy is None else {f"{split}_accuracy": accuracy}
        return {f"{split}_nll": nats, f"{split}_{self.key}": self.read(nats), **in_bits, **measured}

    def logged(self, split: str, nats: float, accuracy: float | None = None) -> dict[str, float]:
        """What `figures` gives, by the keys of a logger."""
        return {key.replace("_", "/", 1): value for key, value in self.figures(split, nats, accuracy).items()}


WORDS = Units("token", "ppl", "perplexity", 2)
CHARACTERS = Units("token", "ppl", "bits per character", 3, in_bits=True)
FRAMES = Units("frame", "nll", "nats per frame", 3, accuracy=True)
