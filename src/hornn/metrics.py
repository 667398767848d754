"""Units of a language model's score. No torch here: reports import this."""

import math


def perplexity(nats: float) -> float:
    """exp of the mean negative log-likelihood per token in nats; inf where that overflows."""
    return math.exp(nats) if nats < 700 else math.inf


def bits(nats: float) -> float:
    """The same mean in bits: per character when a token is a character."""
    return nats / math.log(2)
