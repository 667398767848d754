"""What the files of choices are built to."""

from pathlib import Path

import pytest

from hornn.build import build_network, check_memory, rebuild_data
from hornn.recipe import resolve

ROOT = Path(__file__).parents[1]
COUNTS = list(range(50, 0, -1))
HEADS = sorted(path.stem for path in (ROOT / "conf" / "head").glob("*.yaml"))
EXPERIMENTS = ["hornn/ptb", "hornn/modern", "scrn/ptb", "deep_rnn/ptb_word"]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("head", HEADS)
def test_the_shapes_without_memory_are_those_of_the_network(experiment: str, head: str) -> None:
    words = [f"experiment={experiment}", f"head={head}", "model=srn", "model.hidden_size=20"]
    _, config = resolve([*words, "network.tie_weights=false", "network.embedding_size=20"], {})
    found = build_network(config, COUNTS).state_dict()
    assert check_memory(config, COUNTS, copies=3) == {name: weight.shape for name, weight in found.items()}


def test_a_limit_of_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hornn.build.memory_bytes", lambda: 2**20)
    _, config = resolve(["model=rnn"], {})
    with pytest.raises(
        ValueError, match=r"^360,000 weights need 0.0 GiB, this process may have 0.0: lower model."
    ):
        check_memory(config, [1] * 50, copies=1)


def test_a_published_corpus_takes_no_place_of_a_file() -> None:
    card = {"choices": {"data": "ptb"}, "config": {"data": {}}, "where": {}}
    places = {"root": "/none", "cache_dir": "/none", "train": None, "valid": None, "test": None}
    assert rebuild_data(card, places).name == "ptb"
    with pytest.raises(
        ValueError, match=r"^data\.valid= .* trained on data=ptb, which has none: leave it out$"
    ):
        rebuild_data(card, {**places, "valid": "valid.txt"})
