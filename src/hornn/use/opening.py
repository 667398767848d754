"""Opens the models that a command names, and the corpus whose validation text decides how they are mixed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from hornn.build import rebuild_data
from hornn.data.text import TextData
from hornn.run.composed import as_dict
from hornn.use.scorers import Mixture, Scorer, load_ready


def open_model(cfg: DictConfig) -> Scorer:
    """The model of `checkpoint`, or its mixture with the models of `mix`, ready to score lines.

    Raises ValueError or FileNotFoundError for a file that holds none, and what `mix` raises.
    """
    scorers = load_ready(paths_of(cfg), cfg.device, cfg.seq_len, cfg.precision)
    return mix(scorers, (), cfg) or scorers[0]


def paths_of(cfg: DictConfig) -> list[Path]:
    """The files of `checkpoint` and of `mix`. ValueError where one comes twice, or none is there to be mixed with."""
    given = list(cfg.mix) if isinstance(cfg.mix, ListConfig) else [] if cfg.mix is None else [cfg.mix]
    alone = [] if given and OmegaConf.is_missing(cfg, "checkpoint") else [cfg.checkpoint]
    names = [str(name) for name in [*alone, *given]]
    if len(set(names)) < len(names):
        raise ValueError(f"a mixture of {', '.join(names)} names a model twice: name each once")
    if len(names) == 1 and cfg.mix is not None:
        raise ValueError(
            f"mix= interpolates several models, got {names[0]} alone: give checkpoint={names[0]}"
        )
    return [Path(name) for name in names]


def mix(scorers: Sequence[Scorer], lengths: Sequence[int], cfg: DictConfig) -> Mixture | None:
    """The models, and caches of these lengths, under the weights that suit the validation text; None for one alone."""
    if len(scorers) == 1 and not lengths:
        return None
    mixture = Mixture(scorers, lengths)
    mixture.fit(open_corpus(mixture, cfg).tokens("valid"))
    return mixture


def names_of(model: Scorer) -> dict[str, Any]:
    """What a report calls a model: by its file, or by the files of a mixture."""
    names = [scorer.name for scorer in model.scorers] if isinstance(model, Mixture) else [model.name]
    return {"checkpoint": names[0]} if len(names) == 1 else {"mix": names}


def weights_of(model: Scorer) -> dict[str, Any]:
    """What a report says of the weights of a mixture; nothing of a model alone."""
    if not isinstance(model, Mixture):
        return {}
    weights = dict(zip(model.parts, map(float, model.weights), strict=True))
    return {"weights": weights, "weights_chosen_on": chosen_on(model)}


def chosen_on(model: Scorer) -> str:
    """The text that decides what is not trained."""
    corpus = corpus_of(model)
    return f"{corpus['name']} valid{', which is the test text' if corpus['valid_is_test'] else ''}"


def corpus_of(model: Scorer) -> Mapping[str, Any]:
    """What the model's card says of its corpus. ValueError for an ARPA file, which has none."""
    if model.card is None:
        raise ValueError(
            f"{model.name} is an ARPA file, which says nothing of its corpus: give text=FILE to score, and a "
            "checkpoint beside it in mix= where weights are chosen on validation text"
        )
    described: Mapping[str, Any] = model.card["data"]
    return described


def open_corpus(model: Scorer, cfg: DictConfig) -> TextData:
    """The corpus that the model was trained on. Raises ValueError where the one at hand is another."""
    trained_on = corpus_of(model)
    assert model.card is not None
    data = rebuild_data(model.card, as_dict(cfg.data))
    assert isinstance(data, TextData)
    data.prepare_data()
    data.setup()
    if not is_trained_on(model, data):
        raise ValueError(
            f"the {data.name} text on this machine is not the one that this checkpoint was trained on "
            f"(checksum {data.describe()['text_checksum']}, then {trained_on['text_checksum']}): give the same corpus, "
            "or text=FILE"
        )
    return data


def is_trained_on(model: Scorer, data: TextData) -> bool:
    """Whether the model's card names the text of `data`, and its vocabulary has the same words by the same ids."""
    trained_on = model.card["data"]["text_checksum"] if model.card is not None else None
    return trained_on == data.describe()["text_checksum"] and model.vocabulary.words == data.vocabulary.words
