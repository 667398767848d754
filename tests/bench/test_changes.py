"""The results of one benchmark beside the results of another."""

import pytest

from bench.rows import timed
from hornn.bench import changes


def test_changes_since_another_measurement():
    then = [
        timed(ours_ms=80.0, ratio=0.4),
        timed(ours="gru"),
        timed(section="order"),
        timed(backend="native"),
    ]
    now = [timed(), timed(ours="lstm"), {**timed(backend="native"), "missing": "why"}]
    del now[2]["ours_ms"]
    (change,) = changes.compare_rows(now, then)
    assert change["change"] == pytest.approx(60 / 80)
    assert change["ratio_change"] == pytest.approx(0.6 / 0.4)
    assert change["noise"] is None
    (change,) = changes.compare_rows([timed()], [timed(quiet=False)])
    assert change["noise"] == "never quiet"
    memory = {"section": "memory", "ours": "rnn", "ours_mb": 90.0, "ratio": 0.5}
    (change,) = changes.compare_rows([memory], [{**memory, "ours_mb": 60.0}])
    assert (change["change"], change["ratio_change"], change["unit"]) == (1.5, 1.0, "MB")


@pytest.mark.parametrize(
    ("change", "slower"),
    [
        ({"ratio": 0.8, "spread": [0.65, 0.9]}, True),
        ({"ratio": 0.69, "spread": [0.65, 0.9]}, False),  # was measured then, too
        ({"ratio": 0.8, "spread": [0.55, 0.9]}, False),  # what was then is measured now, too
        ({"ratio": 0.4, "spread": [0.3, 0.5]}, False),
        ({"ratio": 0.8, "spread": [0.65, 0.9], "quiet": False}, False),
        ({"ratio": 0.8, "spread": [0.65, 0.9], "rounds": 4}, False),
    ],
)
def test_slower_is_what_the_spread_does_not_explain(change, slower):
    assert bool(changes.find_slower(changes.compare_rows([timed(**change)], [timed()]))) == slower


def test_larger_is_what_the_processes_do_not_explain():
    then = {"section": "memory", "work": "training", "ours": "rnn", "other": "nn.RNN", "other_mb": 100.0}
    then |= {"ours_mb": 50.0, "ours_range": [48.0, 53.0], "ratio": 0.5}
    for size, slower in ((54.0, True), (52.0, False)):
        now = {**then, "ours_mb": size, "ours_range": [size - 1, size], "ratio": size / 100}
        found = changes.find_slower(changes.compare_rows([now], [then]))
        assert found == (["memory, training, rnn: 0.54 of nn.RNN, was 0.50"] if slower else [])
