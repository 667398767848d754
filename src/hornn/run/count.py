"""A run of a model of counts: what hornn.run.train does for a network, without training.

Its result.json has the keys of any run. `seconds_per_epoch` and `tokens_per_second` measure the fit: one pass over the
training text, with the choice of constants on the validation text; `scoring_tokens_per_second` is the speed at which
the test text was scored, exactly left to right.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hornn.baselines.counts import CountModel, FittedModel
from hornn.build import build_counts, build_data, check_predicts
from hornn.card import make_card
from hornn.checkpoint import write_checkpoint
from hornn.checks import require_positive
from hornn.command_line.ending import IN_SWEEP
from hornn.data.base import SPLITS, Data
from hornn.run.announce import console
from hornn.run.epochs import write_epochs
from hornn.run.folder import open_run
from hornn.run.identity import (
    BEST,
    COLUMNS,
    COUNTS_READ,
    INIT_FROM,
    MACHINE,
    WITHOUT_EFFECT,
    Identity,
    require_same_text,
    weights_given,
)
from hornn.run.loggers import RunLogger, find_loggers, note_best
from hornn.run.provenance import Starts, circumstances
from hornn.use.mixed import MixtureModel

CPU = torch.device("cpu")


def count(config: Mapping[str, Any], identity: Identity, starts: Starts) -> None:
    """Fit the model, score validation and test text once, write result.json, best.ckpt and metrics.csv.

    What the config says of networks, their training and their machine has no part in it, and neither has the seed.
    `init_from` names the models of a mixture, which leaves no best.ckpt, and is refused otherwise. Raises ValueError
    or OSError for a config that cannot run; what an earlier run left in the folder goes only after the fit, when
    nothing can be refused any more.
    """
    starts_from = weights_given(config)
    given = {f"data.{key}": config["data"].get(key) for key in COLUMNS}
    require_positive(**{key: value for key, value in given.items() if value is not None})
    data = build_data({**config["data"], **dict.fromkeys(COLUMNS, 1)})  # one column, left to right
    model = build_counts(config["model"], 1, None)  # refuses arguments before the data are read
    mixed = isinstance(model, MixtureModel)
    if starts_from and not mixed:
        raise ValueError(
            f"init_from={config['init_from']} gives weights to a network; model={identity.choices['model']} counts: "
            "leave it out"
        )
    without_effect = [word for word in starts.overrides if is_of_networks(word, config)]
    of_table = os.environ.get(IN_SWEEP)  # the launcher sets it: a table has words for all its rows
    # how long and where to train is soon said for several models alike, and is told alone
    refused = [word for word in without_effect if not word.lstrip("+~").startswith("trainer.")]
    if refused and not of_table:
        raise ValueError(
            f"{' '.join(refused)} has no effect: model={identity.choices['model']} counts, and takes keys of "
            "model and data alone: leave it out"
        )
    wanted = data.counted or data.predicts
    check_predicts(f"model={identity.choices['model']}", model.predicts, wanted, identity.choices)
    data.prepare_data()
    data.setup()
    require_same_text(identity, config["data"])
    model = build_counts(config["model"], len(data.counts), data.eos_id)
    if isinstance(model, MixtureModel):
        model.open(starts_from, data)
    open_loggers = find_loggers(config["logger"])
    with open_run(identity, data, open_loggers, config["overwrite"]) as run:
        alone = (config["trainer"]["accelerator"], config["trainer"]["devices"]) == ("cpu", 1)
        notes = [] if alone else ["counted on one CPU"]
        if without_effect:
            notes.append(f"of networks alone, without effect here: {' '.join(without_effect)}")
        if mixed and any(isinstance(logger, RunLogger) and logger.sends_model for logger in run.loggers):
            notes.append(f"a mixture has no {BEST}: log_model=true sends nothing")
        run.announce("a mixture, no training" if mixed else "counts, no training", notes)
        figures = {**measure(model, data), **describe(model, data), **starts.summary()}
        judgement = data.judge(lambda split: model.log_probs(data.whole(split)))
        for note in model.notes:
            console.print(note, soft_wrap=True)
        run.begin(model.num_parameters, config, starts.program)
        if isinstance(model, CountModel):
            save(run.dir / BEST, make_card(identity.to_dict(), data), model)
        write_epochs(run.dir, figures["metrics"])
        scores = {
            key: value
            for split in ("valid", "test")
            for key, value in data.units.logged(
                split, figures[f"{split}_nll"], figures.get(f"{split}_accuracy")
            ).items()
        }
        note_best(run.loggers, scores)
        for logger in run.loggers:
            logger.log_metrics(scores, step=1)
            logger.finalize("success")
        how = (
            f"{model.num_parameters:,} weights, fitted in {figures['seconds_per_epoch']:.1f} s; "
            f"{figures['scoring_tokens_per_second']:,.0f} {data.units.target}s/s scored, left to right"
        )
        run.finish({**figures, **judgement.figures}, "\n".join([how, *judgement.lines]))


def is_of_networks(override: str, config: Mapping[str, Any]) -> bool:
    """Whether a word of the command line sets what decides a network's numbers and has no part in counting."""
    key = override.lstrip("+~").partition("=")[0]
    top = key.partition(".")[0]
    has_part = any(
        key in (each, each.partition(".")[0]) or key.startswith(f"{each}.") for each in WITHOUT_EFFECT
    )
    return top in config and top not in (*COUNTS_READ, INIT_FROM) and not has_part and key not in MACHINE


def measure(model: FittedModel, data: Data) -> dict[str, Any]:
    """Fit the model; all of result.json that comes out of that."""
    train, valid, test = (data.whole(split) for split in SPLITS)
    units = data.units
    start = time.perf_counter()
    model.fit(train, valid)
    seconds = time.perf_counter() - start
    valid_figures = units.figures("valid", float(model.score(valid).mean()), accuracy(model, valid))
    start = time.perf_counter()
    test_nll = float(model.score(test).mean())
    scoring = time.perf_counter() - start
    record = {"epoch": 1, "step": 1, **valid_figures}
    speed = {"seconds": seconds, "tokens_per_second": data.size("train") / seconds}
    return {
        "num_parameters": model.num_parameters,
        **valid_figures,
        **units.figures("test", test_nll, accuracy(model, test)),
        "epochs": 1,
        "best_epoch": 1,
        "seconds_per_epoch": seconds,
        "tokens_per_second": data.size("train") / seconds,
        "scoring_tokens_per_second": data.size("test") / scoring,
        "metrics": [record | speed],
        **({"notes": model.notes} if model.notes else {}),
    }


def accuracy(model: FittedModel, split: Any) -> float | None:
    """None where the model has none."""
    hits, tried = model.hits(split)
    return hits / tried if tried else None


def describe(model: FittedModel, data: Data) -> dict[str, Any]:
    """All of result.json that does not come out of the fit."""
    return {
        **circumstances(data, CPU),
        "evaluation": {
            "batch_size": 1,
            "seq_len": None,
            "state": "exactly left to right",
            "test_tokens": data.size("test"),
        },
        "dtype": {"weights": model.dtype},
        "backend": model.backend,
        "native_kernels": False,
        "world_size": 1,
    }


def save(path: Path, card: dict[str, Any], model: CountModel) -> None:
    """Write a checkpoint as a network has one; its `state_dict` holds what was fitted."""
    fitted = {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in model.state().items()
    }
    write_checkpoint({"state_dict": fitted}, path, card)
