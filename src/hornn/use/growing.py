"""A text that grows: what a model expects next, token by token, for whoever searches or asks as somebody types."""

import math

import numpy as np

from hornn.checks import require_positive, require_string
from hornn.data.tokenizer import Tokenizer
from hornn.use.scorers import Scorer
from hornn.use.scoring import Reading, Score, require_numbers


class GrowingText:
    """A text that a model has read, and what it expects next.

    `after` gives the longer text and leaves this one as it is, so that a search may go on from one text in many ways.
    Only what is new is read.
    """

    def __init__(self, scorer: Scorer, reading: Reading) -> None:
        self.scorer, self.reading = scorer, reading

    @property
    def probabilities(self) -> np.ndarray:
        """P of every next token, by id as in `Model.words`: (V,) float64.

        Raises ValueError for a model without finite probabilities.
        """
        p: np.ndarray = require_numbers(self.reading.log_probs).exp().numpy()
        return p

    def after(self, text: str) -> "GrowingText":
        """The text with further words, or characters, behind it: all its lines but the last have ended."""
        ids = self.scorer.vocabulary.encode(tokens_of(self.scorer.tokenizer, "text", text))
        return GrowingText(self.scorer, self.reading.after(ids)) if ids else self

    def score(self, text: str) -> Score:
        """The score of further words, given the text so far. Errors: as above."""
        vocabulary, tokens = self.scorer.vocabulary, tokens_of(self.scorer.tokenizer, "text", text)
        ids, reading, log_probs = vocabulary.encode(tokens), self.reading, list[float]()
        for place, token in enumerate(ids):
            reading = reading.after([ids[place - 1]]) if place else reading
            log_probs.append(float(require_numbers(reading.log_probs)[token]))
        unknown = tuple(vocabulary.are_unknown(np.array(ids, dtype=vocabulary.dtype)).tolist())
        return Score(math.fsum(log_probs), len(ids), sum(unknown), tuple(log_probs), tuple(tokens), unknown)

    def next_words(self, k: int = 10) -> list[tuple[str, float]]:
        """The `k` likeliest tokens, or all, each with its probability, the likeliest first. Errors: as above."""
        require_positive(k=k)
        p = require_numbers(self.reading.log_probs).exp()
        best = p.topk(min(k, len(p)))
        words = self.scorer.vocabulary.decode(best.indices.tolist())
        return list(zip(words, best.values.tolist(), strict=True))


def tokens_of(tokenizer: Tokenizer, name: str, text: str) -> list[str]:
    """The tokens of a text that goes on: all its lines but the last have ended. ValueError for what is no string."""
    require_string(name, text)
    *lines, last = text.split("\n")
    return [*(token for line in lines for token in tokenizer.tokens(line)), *tokenizer.cut(last)]
