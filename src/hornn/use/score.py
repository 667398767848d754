"""Scores texts, one a line, while they arrive."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from hornn.checks import require_positive
from hornn.command_line.ending import reader_has_gone
from hornn.data.lines import STANDARD_INPUT, arriving_lines, shown_name
from hornn.places import OWN_TEXT
from hornn.run.process import set_up_process
from hornn.use.figures import (
    as_json,
    console_of_texts,
    figures_of_text,
    files_of,
    report,
    require_target,
    text_of,
    warn_of_unknown,
)
from hornn.use.model import Model, TokenScores, UnreadableText
from hornn.use.opening import names_of, open_model, weights_of

WINDOW = 16  # batches whose lines are sorted by length, so that lines side by side are alike


def score(cfg: DictConfig) -> None:
    """Print a JSON record for each line of a text as soon as the line has come, and on stderr what all are together.

    Ends where nobody reads the records any more, unless `result` waits for the figures of all lines. Raises ValueError
    or OSError for what cannot be scored; the lines before it have their records.
    """
    set_up_process()
    require_positive(batch_size=cfg.batch_size, seq_len=cfg.seq_len)
    require_target(cfg.result, files_of(cfg, "checkpoint", "mix", "text", *OWN_TEXT))
    path = text_of(cfg, "text")
    model = Model(open_model(cfg))
    if str(path) == STANDARD_INPUT and sys.stdin is not None and sys.stdin.isatty():
        print("scoring standard input, one text a line; Ctrl-D ends it", file=sys.stderr)
    totals, count = Totals(), 0
    for lines in windows(path, WINDOW * cfg.batch_size):
        started = time.perf_counter()
        scores, wrong = score_readable(model, lines, cfg.batch_size, f"{shown_name(path)}, line", count + 1)
        totals.seconds += time.perf_counter() - started
        count += len(scores)
        for text, tokens in zip(lines, scores, strict=wrong is None):
            totals.add(tokens)
            print(as_json(record_of(text, tokens, cfg.per_token)))
        sys.stdout.flush()
        if cfg.result is None and reader_has_gone():
            return
        if wrong is not None:
            raise wrong
    if not totals.tokens:
        raise ValueError(f"{shown_name(path)} holds no tokens: give a text that has some")
    figures = {
        **names_of(model.scorer),
        "scored": shown_name(path),
        "lines": count,
        **totals.figures(model.scorer.tokenizer.unit),
        "precision": model.scorer.precision,
        **weights_of(model.scorer),
    }
    report(figures, console_of_texts(stderr=True), cfg.result)
    warn_of_unknown(figures, model.scorer.vocabulary)


def windows(path: Path, size: int) -> Iterator[list[str]]:
    """The lines that have arrived, `size` at most at a time."""
    for lines in arriving_lines(path):
        yield from (lines[start : start + size] for start in range(0, len(lines), size))


def score_readable(
    model: Model, lines: list[str], batch_size: int, name: str, first: int
) -> tuple[list[TokenScores], UnreadableText | None]:
    """The scores of the lines, or of those before the first that cannot be scored, and what is wrong with that one."""
    try:
        return model.score_tokens(lines, batch_size, name, first), None
    except UnreadableText as error:
        scores, earlier = score_readable(model, lines[: error.place], batch_size, name, first)
        return scores, earlier or error


def record_of(text: str, scores: TokenScores, per_token: bool) -> dict[str, Any]:
    """What is printed of a line; per_token: with each token, its ln P and whether the vocabulary lacks it."""
    record = {
        "text": text,
        "log_prob": float(scores.log_probs.sum()),
        "tokens": len(scores.texts),
        "unknown": int(scores.unknown.sum()),
    }
    if not per_token:
        return record
    rows = zip(scores.texts, scores.log_probs.tolist(), scores.unknown.tolist(), strict=True)
    return {
        **record,
        "per_token": [
            {"token": token, "log_prob": log_p, "unknown": unknown} for token, log_p, unknown in rows
        ],
    }


class Totals:
    """Sums over all lines so far."""

    def __init__(self) -> None:
        self.tokens, self.unknown, self.seconds = 0, 0, 0.0
        self.nll = np.zeros(2)  # of the tokens that the vocabulary has, and of the others

    def add(self, scores: TokenScores) -> None:
        self.tokens += len(scores.texts)
        self.unknown += int(scores.unknown.sum())
        self.nll -= [scores.log_probs[~scores.unknown].sum(), scores.log_probs[scores.unknown].sum()]

    def figures(self, unit: str) -> dict[str, float]:
        """By the names that are shown; unit: of the tokenizer."""
        return {
            **figures_of_text(float(self.nll.sum()), float(self.nll[0]), self.tokens, self.unknown, unit),
            "tokens_per_second": self.tokens / self.seconds,
        }
