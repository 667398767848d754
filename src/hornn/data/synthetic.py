"""A text of the size and the frequencies of text8 without a word of it: what training on the whole takes is known
before the corpus is there."""

from typing import IO

import numpy as np

# P(word of rank r) in proportion to (r + SHIFT)^-EXPONENT for r = 1..TYPES (Zipf; Mandelbrot 1953), fitted to text8:
# the first word takes 6.2 % of all, 253,854 words occur, and about 44 thousand of these more than 10 times in the
# training text (the number in Mikolov et al. 2015).
TYPES, SHIFT, EXPONENT = 292_000, 3.0, 1.24
PREFIX = "syn"  # with the letters of the rank 4.9 letters a word on average, so that 10^8 bytes hold 17 million words
BLOCK = 1_000_000  # words


def write_text(file: IO[bytes], size: int, types: int = TYPES) -> None:
    """Write `size` bytes: a blank before each word, every word drawn by itself; the same text on every machine."""
    shares = (np.arange(1, types + 1) + SHIFT) ** -EXPONENT
    bounds = np.cumsum(shares) / shares.sum()
    words = np.array([f" {PREFIX}{spell(rank)}".encode() for rank in range(1, types + 1)], dtype=object)
    uniform = np.random.RandomState(1)  # its stream never changes, the newer generators' may
    while size:
        ranks = np.searchsorted(bounds[:-1], uniform.random_sample(BLOCK), side="right")
        block = b"".join(words[ranks])[:size]
        file.write(block)
        size -= len(block)


def spell(rank: int) -> str:
    """The number in letters: a, b, ..., z, aa, ab, ..."""
    letters = ""
    while rank:
        rank, digit = divmod(rank - 1, 26)
        letters = chr(ord("a") + digit) + letters
    return letters
