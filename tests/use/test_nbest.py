"""N-best lists: their best hypotheses, word errors, and weights that are found on them."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hornn.use import nbest
from hornn.use.nbest import (
    WEIGHTS,
    Errors,
    along,
    best,
    count_errors,
    find_weights,
    make_tables,
    read_nbest,
    read_references,
    sum_errors,
    total_errors,
    upper_envelope,
)

WORDS = st.lists(st.sampled_from("abc"), max_size=6)


def edit_distance(said: list[str], heard: list[str]) -> int:
    """By the recurrence of Wagner & Fischer (1974)."""
    table = np.zeros((len(said) + 1, len(heard) + 1), dtype=int)
    table[:, 0], table[0] = range(len(said) + 1), range(len(heard) + 1)
    for i, j in itertools.product(range(len(said)), range(len(heard))):
        table[i + 1, j + 1] = min(
            table[i, j + 1] + 1, table[i + 1, j] + 1, table[i, j] + (said[i] != heard[j])
        )
    return int(table[-1, -1])


@given(WORDS, WORDS)
def test_errors_are_the_fewest_edits(said: list[str], heard: list[str]) -> None:
    errors = count_errors(said, heard)
    assert errors.number == edit_distance(said, heard)
    assert errors.words == len(said)
    assert errors.insertions - errors.deletions == len(heard) - len(said)


def test_a_rate_is_over_all_words() -> None:
    errors = sum_errors({"u": ["a", "b"], "v": ["c"]}, {"u": "a x b", "v": ""})
    assert errors == Errors(3, 0, 1, 1)
    assert errors.percent == pytest.approx(200 / 3)
    assert str(errors) == "2 in 3 words: 0 sub, 1 del, 1 ins"


def lists_of(draw: np.random.Generator, number: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    tables = [np.round(draw.normal(size=(draw.integers(1, 6), 4)), 1) for _ in range(number)]
    return tables, [draw.integers(5, size=len(table)) for table in tables]


@pytest.mark.parametrize("seed", range(5))
def test_the_envelope_is_what_is_on_top(seed: int) -> None:
    draw = np.random.default_rng(seed)
    offsets, slopes = draw.integers(-5, 5, 8).astype(float), draw.integers(-3, 3, 8).astype(float)
    tops = list(upper_envelope(offsets, slopes))
    for x in draw.uniform(-20, 20, 200):
        top = [line for start, line in tops if start <= x][-1]
        assert offsets[top] + slopes[top] * x == pytest.approx((offsets + slopes * x).max())


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("seed", range(5))
def test_the_line_search_is_exact(name: str, seed: int) -> None:
    """No point of a fine grid has fewer errors."""
    draw = np.random.default_rng(seed)
    tables, errors = lists_of(draw, 12)
    weights = dict.fromkeys(WEIGHTS, 0.3)
    value = along(tables, errors, weights, name)
    grid = np.arange(-40 if name == "word_penalty" else 0, 40, 0.0137)
    fewest = min(total_errors(tables, errors, weights | {name: float(x)}) for x in grid)
    assert total_errors(tables, errors, weights | {name: value}) <= fewest
    assert name == "word_penalty" or value >= 0


def test_break_points_that_are_equal_but_for_rounding_leave_no_interval() -> None:
    """Both hypotheses change at an old_weight of 1/15: below, one error is made, and none of the sums there is 3."""
    tables = [
        np.array([[0.1, 0, 0, 1], [0, 0, 1.5, 1]]),
        np.array([[0.7000000000000001, 0, 0, 1], [0, 0, 10.5, 1]]),
    ]
    errors = [np.array([1, 0]), np.array([0, 3])]
    weights = {"lm_weight": 1.0, "old_weight": 0.0, "word_penalty": 0.0}
    value = along(tables, errors, weights, "old_weight")
    assert total_errors(tables, errors, weights | {"old_weight": value}) == 1


def test_found_weights_are_no_worse_than_the_starts_and_keep_what_is_given() -> None:
    tables, errors = lists_of(np.random.default_rng(7), 30)
    free = find_weights(tables, errors, {})
    held = find_weights(tables, errors, {"old_weight": 0.5, "lm_weight": 2.0})
    assert (held["old_weight"], held["lm_weight"]) == (0.5, 2.0)
    numbers = [total_errors(tables, errors, each) for each in (free, held)]
    start = dict.fromkeys(WEIGHTS, 0.0) | {"lm_weight": 1.0}
    assert numbers[0] <= total_errors(tables, errors, start)
    assert numbers[1] <= total_errors(tables, errors, held | {"word_penalty": 0.0})
    assert find_weights(tables, errors, dict.fromkeys(WEIGHTS, 1.0)) == dict.fromkeys(WEIGHTS, 1.0)


def test_a_total_is_the_weighted_sum(tmp_path: Path) -> None:
    path = tmp_path / "n.tsv"
    path.write_text("u1\ta b c\t-3\t-5\nu2\tx\t-1\t0\n\nu1\ta b\t-2.5\t-9\n")
    lists = read_nbest(path)
    assert list(lists) == ["u1", "u2"]
    tables = make_tables(lists, np.array([-7.0, -8.0, -4.0]))  # in the order of the lists: u1, u1, u2
    assert tables["u1"].tolist() == [[-3, -7, -5, 3], [-2.5, -8, -9, 2]]
    assert tables["u2"].tolist() == [[-1, -4, 0, 1]]
    for lm, old, penalty in itertools.product((0, 0.4, 3), (0, 0.5), (-2, 0, 1)):
        totals = [-3 + lm * -7 + old * -5 + penalty * 3, -2.5 + lm * -8 + old * -9 + penalty * 2]
        weights = dict(zip(WEIGHTS, (lm, old, penalty), strict=True))
        assert best(tables["u1"], weights) == int(np.argmax(totals))
    assert read_nbest(path, costs=True)["u1"][0].acoustic == 3


def test_lines_that_are_none(tmp_path: Path) -> None:
    path, references = tmp_path / "n.tsv", tmp_path / "r.txt"
    for line, message in {
        "u1\ta b\t-3": "line 2: a hypothesis is utterance id, text, acoustic score and old LM score",
        "u1 a b -3 -4": "with tabs between them, got 'u1 a b -3 -4'",
        "u 1\ta b\t-3\t-4": "an utterance id has no white space, got 'u 1'",
        "\ta b\t-3\t-4": "an utterance id has no white space, got ''",
        "u1\ta\tx\t1": "line 2: a hypothesis is",
        "u1\ta\t1\tnan": "line 2: a score must be finite",
    }.items():
        path.write_text(f"u0\ta\t1\t1\n{line}\n")
        with pytest.raises(ValueError, match=message):
            read_nbest(path)
    path.write_text("\n")
    with pytest.raises(ValueError, match="holds no hypotheses"):
        read_nbest(path)
    path.write_text("u1\ta\t1\t1\nu2\tb\t1\t1\n")
    for text, message in {
        "u1 a\nu1 b\n": "line 2: the utterance 'u1' comes twice",
        "u1 a\n": "'u2' has no reference in",
        "u1 a\nu2 b\nu3 c\n": "'u3' has no hypotheses: give the same utterances in both",
        "u1\nu2\n": "holds no words",
    }.items():
        references.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_references(references, read_nbest(path))
    references.write_text("u1\ta  b\nu2\n")
    assert read_references(references, read_nbest(path)) == {"u1": ["a", "b"], "u2": []}


def test_of_intervals_without_errors_the_widest_is_taken() -> None:
    """Without errors are lm_weight in (1, 2) and in (3, 9)."""
    rows = np.array([[0, 0, 0, 1], [-1, 1, 0, 1], [-3, 2, 0, 1], [-6, 3, 0, 1], [-15, 4, 0, 1]], dtype=float)
    assert along([rows], [np.array([1, 0, 1, 0, 1])], dict.fromkeys(WEIGHTS, 0.0), "lm_weight") == 6.0


def test_of_equal_hypotheses_the_first_is_best_and_on_top() -> None:
    rows = np.array([[-2.0, 0, 0, 1], [-1, 0, 0, 1], [-1, 0, 0, 1]])
    assert best(rows, dict.fromkeys(WEIGHTS, 1.0)) == 1
    assert list(upper_envelope(rows[:, 0], rows[:, 1])) == [(-np.inf, 1)]


def test_the_best_of_all_starts_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def descend(_: Any, __: Any, weights: Mapping[str, float], free: Any) -> tuple[int, dict[str, float]]:
        begun.append(weights["lm_weight"])
        return (3 if weights["lm_weight"] == 1 else 5), dict(weights)

    monkeypatch.setattr(nbest, "descend", descend)
    assert find_weights([], [], {})["lm_weight"] == 1
    assert begun == [0.1, 1, 10]


def test_weights_are_moved_until_none_brings_fewer_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first weight helps only once the last one was moved."""

    def along(_: Any, __: Any, weights: Mapping[str, float], name: str) -> float:
        return 2.0 if name == "word_penalty" or weights["word_penalty"] == 2 else weights[name]

    def total_errors(_: Any, __: Any, weights: Mapping[str, float]) -> int:
        return 9 - int(sum(weights[name] == 2 for name in WEIGHTS))

    monkeypatch.setattr(nbest, "along", along)
    monkeypatch.setattr(nbest, "total_errors", total_errors)
    assert nbest.descend([], [], dict.fromkeys(WEIGHTS, 0.0), WEIGHTS) == (6, dict.fromkeys(WEIGHTS, 2.0))
