"""The corpus that a model was trained on, found again on this machine."""

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig

from hornn.card import rebuild_data
from hornn.data.base import Data
from hornn.data.text import TextData
from hornn.run.composed import as_dict
from hornn.use.scorers import Scorer


def data_of(card: Mapping[str, Any], places: DictConfig, remedy: str = "give the same corpus") -> Data:
    """The data that the model of a card was trained on. Raises ValueError where those at hand are others."""
    data = rebuild_data(card, as_dict(places))
    data.prepare_data()
    data.setup()
    here, then = data.describe()["text_checksum"], card["data"]["text_checksum"]
    if here != then:
        checksum = str(card["data"].get("checksum", ""))
        changed = data.corpus.changed_since(checksum) if isinstance(data, TextData) else []
        difference = f"changed: {', '.join(changed)}" if changed else f"checksum {here}, then {then}"
        raise ValueError(
            f"the {data.name} corpus on this machine is not the one that this checkpoint was trained on "
            f"({difference}): {remedy}"
        )
    return data


def open_corpus(model: Scorer, cfg: DictConfig) -> TextData:
    """The text that the model was trained on. Raises ValueError where the one at hand is another."""
    corpus_of(model)
    assert model.card is not None
    data = data_of(model.card, cfg.data, "give the same corpus, or text=FILE")
    assert isinstance(data, TextData)
    if not is_trained_on(model, data):
        raise ValueError(f"{model.name} has another vocabulary than the {data.name} corpus: train it anew")
    return data


def is_trained_on(model: Scorer, data: TextData) -> bool:
    """Whether the model's card names the text of `data`, and its vocabulary has the same words by the same ids."""
    trained_on = model.card["data"]["text_checksum"] if model.card is not None else None
    return trained_on == data.describe()["text_checksum"] and model.vocabulary.words == data.vocabulary.words


def corpus_of(model: Scorer) -> Mapping[str, Any]:
    """What the model's card says of its corpus. ValueError for an ARPA file, which has none."""
    if model.card is None:
        raise ValueError(
            f"{model.name} is an ARPA file, which says nothing of its corpus: give text=FILE to score, and a "
            "checkpoint beside it in mix= where weights are chosen on validation text"
        )
    described: Mapping[str, Any] = model.card["data"]
    return described


def chosen_on(model: Scorer) -> str:
    """The text that decides what is not trained."""
    corpus = corpus_of(model)
    return f"{corpus['name']} valid{', which is the test text' if corpus['valid_is_test'] else ''}"
