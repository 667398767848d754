"""Units of a language model's score. No torch here: reports import this."""

import math


def perplexity(nats: float) -> float:
    """exp of the mean negative log-likelihood per token in nats; inf where that overflows."""
    return math.exp(nats) if nats < 700 else math.inf


def bits(nats: float) -> float:
    """The same mean in bits: per character when a token is a character."""
    return nats / math.log(2)


def scores_of(split: str, nll: float, of_characters: bool) -> dict[str, float]:
    """A mean of -ln P as it is logged: also as perplexity and, of characters, in bits."""
    in_bits = {f"{split}/bpc": bits(nll)} if of_characters else {}
    return {f"{split}/nll": nll, f"{split}/ppl": perplexity(nll), **in_bits}
