"""Which rows on text8 are measured, and what follows from an update's time."""

import time

import pytest

from hornn.bench import text8
from hornn.bench.plan import FULL, QUICK
from hornn.data.text8 import build_data
from hornn.places import CONF
from hornn.recipe import load


def test_each_network_of_the_tables_comes_once():
    rows = [(label, model) for label, model, _ in text8.networks()]
    assert len(rows) == len(set(rows)) == 25  # of 34 rows 7 stand in two tables and 2 are n-grams
    assert {model for _, model in rows} >= {"rnn", "lstm", "srn", "scrn", "memn2n", "hornn_gated"}


def test_hours_follow_from_the_time_of_an_update(monkeypatch):
    """At 2 seconds an update of 20 x 30 words, 28,059 updates take 15.6 hours."""
    seconds = iter(range(0, 100, 2))
    monkeypatch.setattr(time, "process_time", lambda: float(next(seconds)))
    _, _, config = next(text8.networks())
    config["model"]["hidden_size"] = 8
    row = text8.measure(config, QUICK, vocab_size=50, words=text8.TRAINING_WORDS)
    assert (row["ms"], row["speed"], row["epochs"]) == (2000, 300, 10)
    assert row["epoch_hours"] == pytest.approx(28_059 * 2 / 3600)
    assert row["hours"] == 10 * row["epoch_hours"]


@pytest.mark.corpus
def test_the_head_has_the_words_that_its_hours_are_computed_from(corpus_root, tmp_path):
    head = load(CONF / "sweeps" / "scrn_table3_head.yaml")["data"]
    data = build_data(root=corpus_root("text8/text8.head"), cache_dir=str(tmp_path), **head)
    data.prepare_data()
    data.setup()
    about = data.describe()
    assert about["tokens"]["train"] == text8.HEAD_TRAINING_WORDS
    assert about["vocab_size"] == FULL.head_vocab
