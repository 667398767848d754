"""Rescores the n-best lists of a recogniser with a language model."""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from hornn.checks import require_positive, require_range
from hornn.data.lines import shown_name
from hornn.places import OWN_TEXT
from hornn.run.process import set_up_process
from hornn.use import nbest
from hornn.use.figures import console_of_texts, files_of, report, require_target, text_of
from hornn.use.model import Model, TokenScores, UnreadableText
from hornn.use.nbest import WEIGHTS, NBest
from hornn.use.opening import names_of, open_model, weights_of


def rescore(cfg: DictConfig) -> None:
    """Print the best hypothesis of each utterance, and on stderr the weights and the word error rates.

    Raises ValueError or OSError for lists that cannot be rescored.
    """
    set_up_process()
    require_positive(batch_size=cfg.batch_size, seq_len=cfg.seq_len)
    sources = ("checkpoint", "mix", "nbest", "references", "dev", "dev_references")
    require_target(cfg.result, files_of(cfg, *sources, *OWN_TEXT))
    fixed = fixed_weights(cfg)
    if cfg.references is not None or cfg.dev is not None:
        nbest.levenshtein()  # missing, it is missed before anything is scored
    dev = nbest.read_nbest(text_of(cfg, "dev"), cfg.costs) if cfg.dev is not None else None
    dev_said = nbest.read_references(text_of(cfg, "dev_references"), dev) if dev is not None else {}
    lists = nbest.read_nbest(text_of(cfg, "nbest"), cfg.costs)
    said = nbest.read_references(text_of(cfg, "references"), lists) if cfg.references is not None else {}
    model = Model(open_model(cfg))
    weights, found = fixed, {}
    if dev is not None:
        tables, _ = tables_of(model, dev, cfg.batch_size, text_of(cfg, "dev"))
        errors = [
            np.array([nbest.count_errors(words, h.text.split()).number for h in dev[utterance]])
            for utterance, words in dev_said.items()
        ]
        weights = nbest.find_weights([tables[utterance] for utterance in dev_said], errors, fixed)
        heard = best_of(dev, tables, weights)
        found = {"weights_found_on": str(cfg.dev)} if len(fixed) < len(WEIGHTS) else {}
        found |= error_rates("dev_wer", dev_said, dev, heard)
    tables, scores = tables_of(model, lists, cfg.batch_size, text_of(cfg, "nbest"))
    heard = best_of(lists, tables, weights)
    for utterance, text in heard.items():
        print(utterance, text)
    sys.stdout.flush()
    figures = {
        **names_of(model.scorer),
        **weights_of(model.scorer),
        "utterances": len(lists),
        "hypotheses": len(scores),
        "tokens": sum(len(score.texts) for score in scores),
        "out_of_vocabulary": sum(int(score.unknown.sum()) for score in scores),
        "score_weights": dict(weights),
        **found,
        **(error_rates("wer", said, lists, heard) if said else {}),
    }
    report(figures, console_of_texts(stderr=True), cfg.result)


def fixed_weights(cfg: DictConfig) -> dict[str, float]:
    """The weights that are given; where nothing is there to find the others on, 0 for them."""
    given = {name: cfg[name] for name in WEIGHTS if cfg[name] is not None}
    for name, value in given.items():
        signed = name == nbest.SIGNED
        holds = type(value) in (int, float) and math.isfinite(value) and (signed or value >= 0)
        require_range(name, value, "finite" if signed else ">= 0 and finite", holds)
    if (cfg.dev is None) != (cfg.dev_references is None):
        raise ValueError("dev= and dev_references= belong together: give both, or neither")
    if cfg.dev is None and "lm_weight" not in given:
        raise ValueError(
            "lm_weight is not given: give it, or dev= and dev_references= on which it is to be found"
        )
    return given if cfg.dev is not None else dict.fromkeys(WEIGHTS, 0.0) | given


def tables_of(
    model: Model, lists: NBest, batch_size: int, path: Path
) -> tuple[dict[str, np.ndarray], list[TokenScores]]:
    """What decides in each list, and what the model says of each hypothesis, in the order of the lists.

    path: their file. Raises ValueError for a hypothesis that cannot be scored.
    """
    given = [hypothesis for hypotheses in lists.values() for hypothesis in hypotheses]
    try:
        scores = model.score_tokens([hypothesis.text for hypothesis in given], batch_size)
    except UnreadableText as error:
        line = given[error.place].line
        raise ValueError(f"{shown_name(path)}, line {line}: {error.reason}") from None
    return nbest.make_tables(lists, np.array([float(score.log_probs.sum()) for score in scores])), scores


def best_of(lists: NBest, tables: Mapping[str, np.ndarray], weights: Mapping[str, float]) -> dict[str, str]:
    return {
        utterance: hypotheses[nbest.best(tables[utterance], weights)].text
        for utterance, hypotheses in lists.items()
    }


def error_rates(
    name: str, said: Mapping[str, list[str]], lists: NBest, heard: Mapping[str, str]
) -> dict[str, Any]:
    """Word error rates: of the first hypotheses in the lists, of those chosen, and the least that the lists allow."""
    first, least = {}, {}
    for utterance, words in said.items():
        texts = [hypothesis.text for hypothesis in lists[utterance]]
        errors = [nbest.count_errors(words, text.split()).number for text in texts]
        first[utterance], least[utterance] = texts[0], texts[int(np.argmin(errors))]
    chosen = nbest.sum_errors(said, heard)
    return {
        f"{name}_of_first": nbest.sum_errors(said, first).percent,
        name: chosen.percent,
        f"{name}_at_least": nbest.sum_errors(said, least).percent,
        f"{name}_errors": str(chosen),
    }
