"""A cache in a model that Python loads: what it says is what the command says, and is a distribution."""

import json
import math
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import hornn

NAMES = ["network/best.ckpt", "counts/best.ckpt"]


@pytest.mark.each(2)
def test_a_perplexity_with_caches_is_that_of_the_command(command: Any, folder: Path, tmp_path: Path) -> None:
    figures, paths = tmp_path / "figures.json", [folder / name for name in NAMES]
    mix = ",".join(map(str, paths))
    done = command("evaluate", f"mix=[{mix}]", "cache=[2,5]", "split=valid", f"result={figures}")
    assert done.code == 0, done.err
    valid = folder / "valid.txt"
    model = hornn.load(paths, cache=[2, 5], fit_on=valid)
    assert model.perplexity(valid) == pytest.approx(json.loads(figures.read_text())["perplexity"], rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_says_of_a_token_is_what_it_says_of_the_next_word(folder: Path, name: str) -> None:
    """Each text by itself: the cache of a second one remembers nothing of the first."""
    model = hornn.load(folder / name, cache=2, fit_on=folder / "valid.txt")
    model.scorer.weights = np.array([0.6, 0.4])  # type: ignore[attr-defined]
    for score in model.score(["a b a c", "a b a c"], per_token=True):
        assert score.token_texts is not None
        assert score.token_log_probs is not None
        tokens = list(score.token_texts[:4])
        for place, token in enumerate(tokens):
            words = dict(model.next_words(" ".join(tokens[:place]), k=100))
            assert sum(words.values()) == pytest.approx(1)
            assert words[token] == pytest.approx(math.exp(score.token_log_probs[place]), rel=1e-5)
    assert score.log_prob == pytest.approx(-math.log(model.perplexity("a b a c\n")) * score.tokens, rel=1e-5)
    cached = dict(model.next_words("a b a c", k=100))
    alone = dict(hornn.load(folder / name).next_words("a b a c", k=100))
    assert cached["a"] == pytest.approx(0.6 * alone["a"] + 0.4 / 2, rel=1e-5)
    assert cached["b"] == pytest.approx(0.6 * alone["b"], rel=1e-5)  # of the last two tokens it is none


def test_a_length_may_be_a_number_of_numpy(folder: Path) -> None:
    one, other = (
        hornn.load(folder / NAMES[1], cache=length, fit_on="a b").perplexity("a b a\n")
        for length in cast("list[int]", [np.int64(5), 5])
    )
    assert one == other


def test_what_cannot_be_is_said(folder: Path) -> None:
    path = folder / NAMES[0]
    for message, given in {
        "the weight of a cache follows from a text: give fit_on": {"cache": 200},
        "cache must be one whole number of tokens, 1 or more": {"cache": 0, "fit_on": "a b"},
        "of several models, got one: leave it out, or give a cache": {"fit_on": "a b"},
    }.items():
        with pytest.raises(ValueError, match=message):
            hornn.load(path, **given)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a mixture of 2 models is no network"):
        _ = hornn.load(path, cache=200, fit_on="a b").network
