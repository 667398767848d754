"""Some rows of a table, and those that they start from."""

from hornn.sweep.sweeper import picked, with_starts


def test_picked_rows_come_as_they_were_named() -> None:
    runs = {name: [f"model={name}"] for name in ("rnn", "lstm", "gru")}
    assert picked(runs, ["gru", "rnn", "gru"]) == ["gru", "rnn"]
    assert picked(runs, None) == ["rnn", "lstm", "gru"]


def test_rows_come_behind_those_that_they_start_from() -> None:
    assert with_starts(["deep", "rnn", "stack"], {"deep": ["rnn"], "stack": ["wide"]}) == [
        "rnn",
        "deep",
        "wide",
        "stack",
    ]
    assert with_starts(["both", "wide"], {"both": ["rnn", "wide"]}) == ["rnn", "wide", "both"]
