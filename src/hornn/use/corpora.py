"""The corpus that a model was trained on, found again on this machine."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from hornn.card import rebuild_data
from hornn.data.base import Data
from hornn.data.text import TextData
from hornn.result import content_of
from hornn.run.composed import as_dict
from hornn.use.figures import files_of
from hornn.use.scorers import Scorer


def data_of(
    card: Mapping[str, Any],
    places: DictConfig,
    written: Iterable[Path] = (),
    remedy: str = "give the same corpus",
) -> Data:
    """The data that the model of a card was trained on.

    written: files that the command will write. Raises ValueError where the data at hand are others, and where such a
    file is one of theirs.
    """
    data = rebuild_data(card, as_dict(places))
    data.prepare_data()
    data.setup()
    here, then = map(content_of, (data.describe(), card["data"]))
    if here != then:
        checksum = str(card["data"].get("checksum", ""))
        changed = data.corpus.changed_since(checksum) if isinstance(data, TextData) else []
        difference = f"changed: {', '.join(changed)}" if changed else f"{here}, then {then}"
        raise ValueError(
            f"the {data.name} corpus on this machine is not the one that this checkpoint was trained on "
            f"({difference}): {remedy}"
        )
    for path in written:
        require_apart(path, data)
    return data


def require_apart(path: Path, data: Data) -> None:
    """Raise ValueError where a file that is to be written would replace one that these data are read from."""
    sources = (
        [data.corpus.path_of(split) for split in data.corpus.splits] if isinstance(data, TextData) else []
    )
    if not sources and "path" in (described := data.describe()):
        sources = [Path(described["path"])]
    for source in sources:
        if path.exists() and source.resolve() in (path.resolve(), *path.resolve().parents):
            raise ValueError(f"{path} is a file of the {data.name} corpus: give another name to write to")


def open_corpus(model: Scorer, cfg: DictConfig) -> TextData:
    """The text that the model was trained on. Raises ValueError where the one at hand is another."""
    corpus_of(model)
    assert model.card is not None
    data = data_of(
        model.card, cfg.data, files_of(cfg, "result", "arpa"), "give the same corpus, or text=FILE"
    )
    assert isinstance(data, TextData)
    if not is_trained_on(model, data):
        raise ValueError(f"{model.name} has another vocabulary than the {data.name} corpus: train it anew")
    return data


def is_trained_on(model: Scorer, data: TextData) -> bool:
    """Whether the model's card names the text of `data`, and its vocabulary has the same words by the same ids."""
    there = content_of(model.card["data"]) if model.card is not None else None
    return there == content_of(data.describe()) and model.vocabulary.words == data.vocabulary.words


def require_one_text(scorers: Iterable[Scorer], data: TextData) -> None:
    """Raise ValueError for the first model that is of another text than `data`, or reads it by another vocabulary."""
    for scorer in scorers:
        if not is_trained_on(scorer, data):
            raise ValueError(
                f"{scorer.name} was trained on another text, or with another vocabulary, than the corpus {data.name} "
                "here: mix models of one text"
            )


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
