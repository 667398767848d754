"""A row of results as a section would measure it."""


def timed(**changes):
    names = {
        "section": "step",
        "work": "training step",
        "ours": "rnn",
        "backend": "eager",
        "precision": "auto",
    }
    values = {"other": "nn.RNN", "scan": "eager", "dtype": "bf16", "ours_ms": 60.0, "other_ms": 100.0}
    rounds = {"ratio": 0.6, "spread": [0.5, 0.7], "rounds": 15, "dropped": 3, "quiet": True}
    return {**names, **values, **rounds, **changes}
