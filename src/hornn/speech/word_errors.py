"""Word errors: what was heard against what was said, by the fewest edits."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hornn.speech.packages import load


def compare(said: Sequence[Sequence[str]], heard: Sequence[Sequence[str]]) -> Any:
    """jiwer's comparison of utterances, each a sequence of words: `wer`, `substitutions`, `alignments` and more."""
    return load("jiwer").process_words(*([" ".join(words) for words in each] for each in (said, heard)))


def errors_of(said: Sequence[Sequence[str]], heard: Sequence[Sequence[str]]) -> np.ndarray:
    """(U,) int64: the word errors of each utterance."""
    each = [compare([words], [found]) for words, found in zip(said, heard, strict=True)]
    return np.array([found.substitutions + found.deletions + found.insertions for found in each])


def aligned(names: Sequence[str], said: Sequence[Sequence[str]], heard: Sequence[Sequence[str]]) -> list[str]:
    """The words of utterances one below the other, with an S, D or I below each error."""
    found = compare(said, heard)
    text = load("jiwer").visualize_alignment(found, show_measures=False, skip_correct=False)
    parts = [part.strip("\n").splitlines() for part in text.split("=== SENTENCE ")[1:]]
    return [
        line.rstrip() for name, (_, _, *lines) in zip(names, parts, strict=True) for line in (name, *lines)
    ]
