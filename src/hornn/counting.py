"""A run of a model of counts: what hornn.experiment does for a network, without training.

Its result.json has the keys of any run. `seconds_per_epoch` and `tokens_per_second` are those of the fit, its one
pass over the training text, the choice of constants on the validation text included; `scoring_tokens_per_second` is
the speed at which the test text was scored, exactly left to right.
"""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
import wandb
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from hornn.baselines.counts import CountModel
from hornn.build import build_counts, make_card
from hornn.callbacks import write_metrics
from hornn.checkpoint import CARD, AtomicCheckpointIO
from hornn.checks import require_range
from hornn.console import announce, conclude
from hornn.data.text import TextDataModule
from hornn.data.vocabulary import EOS, Vocabulary
from hornn.identity import BEST, CONFIG, config_hash, effective, plain, run_folder
from hornn.metrics import perplexity
from hornn.occupancy import find_unfinished, lock_run, remove_run
from hornn.provenance import Parts, commit, device_name, peak_memory_mb, versions
from hornn.result import write_atomically, write_result

CPU = torch.device("cpu")


def fit_counts(cfg: DictConfig) -> None:
    """Fit the model, score validation and test text once, write result.json, best.ckpt and metrics.csv.

    What the config says of networks, their training and their machine has no part in it, and neither has the seed;
    `init_from` is refused. Raises ValueError or OSError for a config that cannot run; what an earlier run left in
    the folder goes only after the fit, when nothing can be refused any more.
    """
    parts = Parts(commit())
    config, choices = plain(cfg), HydraConfig.get().runtime.choices
    require_range("seed", cfg.seed, "from 0 to 4294967295", 0 <= cfg.seed < 2**32)
    if cfg.init_from is not None:
        raise ValueError(
            f"init_from={cfg.init_from} gives weights to a network; {choices['model']} counts: leave it out"
        )
    data: TextDataModule = instantiate(cfg.data)
    data.batch_size = data.seq_len = data.eval_batch_size = 1  # one column, left to right
    build_counts(
        config["model"], Vocabulary([EOS], [1]), data.tokenizer
    )  # refuses arguments before the text is read
    data.prepare_data()
    data.setup()
    model = build_counts(config["model"], data.vocabulary, data.tokenizer)
    digest = config_hash(config)
    run_dir = run_folder(config, choices["model"], choices["data"])
    identity = {"model": choices["model"], "data": data.name, "seed": cfg.seed, "config_hash": digest}
    lock = lock_run(run_dir)
    find_unfinished(
        run_dir, digest, cfg.seed, cfg.overwrite
    )  # a fit that was cut off left nothing to continue
    logger = instantiate(cfg.logger)(
        run_dir=run_dir, about={**identity, "cell": config["model"]}, resume=False
    )
    finished = False
    try:
        machine = (
            [] if (cfg.trainer.accelerator, cfg.trainer.devices) == ("cpu", 1) else ["counted on one CPU"]
        )
        announce(run_dir, choices["model"], "counts, no training", data, machine, resume=False)
        figures = measure(model, data)
        identity["num_parameters"] = model.num_parameters
        remove_run(run_dir)
        write_atomically(run_dir / CONFIG, OmegaConf.to_yaml(OmegaConf.create(config)))
        save(run_dir / BEST, make_card(config, digest, data), model)
        write_metrics(run_dir / "metrics.csv", figures["metrics"])
        logger.log_hyperparams({**config, **identity})
        logger.log_metrics({f"{split}/ppl": figures[f"{split}_ppl"] for split in ("valid", "test")}, step=1)
        logger.finalize("success")
        finished = True
    finally:
        if wandb.run is not None:
            wandb.finish(exit_code=int(not finished))
    result = {
        "status": "completed",
        **identity,
        **figures,
        **describe(config, data),
        **parts.summary(),
    }
    write_result(run_dir, result)
    how = (
        f"{model.num_parameters:,} parameters, fitted in {figures['seconds_per_epoch']:.1f} s; "
        f"{figures['scoring_tokens_per_second']:,.0f} tokens/s scored, left to right"
    )
    conclude(run_dir, result, how)
    lock.close()


def measure(model: CountModel, data: TextDataModule) -> dict[str, Any]:
    """Fit the model; all of result.json that comes out of that."""
    train, valid, test = (data.tokens(split) for split in ("train", "valid", "test"))
    start = time.perf_counter()
    model.fit(train, valid)
    seconds = time.perf_counter() - start
    valid_nll = float(model.score(valid).mean())
    start = time.perf_counter()
    test_nll = float(model.score(test).mean())
    scoring = time.perf_counter() - start
    record = {"epoch": 1, "step": 1, "valid_nll": valid_nll, "valid_ppl": perplexity(valid_nll)}
    speed = {"seconds": seconds, "tokens_per_second": len(train) / seconds}
    return {
        "valid_ppl": perplexity(valid_nll),
        "test_ppl": perplexity(test_nll),
        "epochs": 1,
        "best_epoch": 1,
        "seconds_per_epoch": seconds,
        "tokens_per_second": len(train) / seconds,
        "scoring_tokens_per_second": len(test) / scoring,
        "peak_memory_mb": peak_memory_mb(CPU),
        "metrics": [record | speed],
    }


def describe(config: dict[str, Any], data: TextDataModule) -> dict[str, Any]:
    """All of result.json that speaks of the data, the program and the machine."""
    return {
        "unigram": {f"{split}_ppl": data.unigram_ppl(split) for split in ("valid", "test")},
        "evaluation": {
            "batch_size": 1,
            "seq_len": None,
            "state": "exactly left to right",
            "test_tokens": len(data.tokens("test")),
        },
        "device": device_name(CPU),
        "dtype": {"weights": "fp64"},
        "backend": "numpy",
        "native_kernels": False,
        "world_size": 1,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {key: value for key, value in data.describe().items() if key != "path"},
        "versions": versions(),
        "config": effective(config),
    }


def save(path: Path, card: dict[str, Any], model: CountModel) -> None:
    """Write a checkpoint as a network has one; its `state_dict` holds what was fitted."""
    fitted = {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in model.state().items()
    }
    AtomicCheckpointIO().save_checkpoint({CARD: card, "state_dict": fitted}, path)
