"""Opens the model that a command names, or mixes the models that it names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from hornn.use.checkpoints import load_ready
from hornn.use.corpora import chosen_on, open_corpus, require_one_text
from hornn.use.scorers import Mixture, Scorer


def open_model(cfg: DictConfig) -> Scorer:
    """The model of `checkpoint`, or its mixture with the models of `mix`, ready to score lines.

    Raises ValueError or FileNotFoundError for a file that holds none, and what `mix` raises.
    """
    scorers = load_ready(paths_of(cfg), cfg.device, cfg.seq_len, cfg.precision)
    return mix(scorers, (), cfg) or scorers[0]


def paths_of(cfg: DictConfig) -> list[Path]:
    """The files of `checkpoint` and of `mix`. ValueError where one comes twice, or none is there to be mixed with."""
    given = list(cfg.mix) if isinstance(cfg.mix, ListConfig) else [] if cfg.mix is None else [cfg.mix]
    if isinstance(named := OmegaConf.select(cfg, "checkpoint", throw_on_missing=False), ListConfig):
        raise ValueError(
            f"checkpoint= takes one file, got {len(named)}: mix=[PATH,PATH] interpolates several"
        )
    alone = [] if given and OmegaConf.is_missing(cfg, "checkpoint") else [cfg.checkpoint]
    names = [str(name) for name in [*alone, *given]]
    if len({Path(name).resolve() for name in names}) < len(names):
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
    data = open_corpus(mixture, cfg)
    require_one_text((scorer for scorer in scorers if scorer.card is not None), data)
    mixture.fit(data.tokens("valid"))
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
