"""The command: measures the memory of trained networks, shows it, and keeps it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from hornn.analysis.factors import measure_factors
from hornn.analysis.gradients import has_states, measure_gradients, reach
from hornn.analysis.known_words import describe_known, effective_memory, find_blocks, score_known
from hornn.analysis.signals import POOLED, measure_signals
from hornn.analysis.stages import START, Stage, find_stages
from hornn.analysis.terminal import show
from hornn.analysis.unroll import find_places
from hornn.checks import require_choice, require_file_name, require_positive, require_range
from hornn.data.base import SPLITS
from hornn.places import OWN_TEXT
from hornn.result import MEMORY, MEMORY_VERSION, RESULT, finite, read_result
from hornn.run.identity import BEST
from hornn.run.process import set_up_process
from hornn.run.provenance import commit, device_name
from hornn.sweep.record import FOLDER, read_record, require_record
from hornn.use.additions import FOR_READING, record, result_beside
from hornn.use.checkpoints import Opened, open_checkpoint
from hornn.use.corpora import open_corpus
from hornn.use.figures import console_of_texts, files_of, require_probabilities, require_target
from hornn.use.scorers import NetworkScorer
from hornn.use.sequences import SequenceScorer
from hornn.writing import require_writable, write_atomically

console = console_of_texts()
SETTINGS = ("split", "lags", "windows", "targets")
CHUNK = 500  # tokens that are read at once


def analyse(cfg: DictConfig) -> None:
    """Show the memory of the network of `checkpoint`, or record it for each finished network of text of `sweep`.

    Raises ValueError or OSError for what cannot be measured; of a sweep's models, where none can.
    """
    set_up_process()
    check_options(cfg)
    paths = [Path(str(cfg.checkpoint))] if cfg.sweep is None else runs_of(str(cfg.sweep))
    left_out = 0
    for path in paths:
        scorer = open_checkpoint(path, cfg.device)
        if not (isinstance(scorer, NetworkScorer) and has_states(scorer.network)):
            said = f"{path} {why_without_states(scorer)}"
            if cfg.sweep is None:
                raise ValueError(f"{said}: give the checkpoint of a network that has states and reads text")
            console.print(said, markup=False)
            left_out += 1
            continue
        result = result_beside(scorer, path) if cfg.record or cfg.sweep is not None else None
        if result is not None:
            if cfg.sweep is not None and is_measured(result, cfg):
                console.print(f"{path.parent / RESULT} holds these measurements already", markup=False)
                continue
            require_writable(path.parent / RESULT, FOR_READING)
        figures = rounded(measure(path, scorer, cfg))
        show(figures, console)
        if cfg.result is not None:
            write_atomically(Path(str(cfg.result)), json.dumps(finite(figures), indent=1) + "\n")
        if result is not None:
            record(path, result, {MEMORY: figures}, console)
    if left_out == len(paths):
        raise ValueError(
            f"sweep={cfg.sweep} has no network to measure: give a sweep with networks that have states and read text"
        )


def why_without_states(opened: Opened) -> str:
    if isinstance(opened, SequenceScorer):
        return "is no model of text"
    how = "reads the last word alone" if isinstance(opened, NetworkScorer) else "counts"
    return f"{how} and has no states to measure"


def check_options(cfg: DictConfig) -> None:
    """Refuse what no network could be asked, and files that cannot be written."""
    require_positive(windows=cfg.windows, targets=cfg.targets)
    require_range("lags", cfg.lags, "a whole number >= 2", type(cfg.lags) is int and cfg.lags >= 2)
    require_choice("split", cfg.split, SPLITS)
    if (cfg.checkpoint is None) == (cfg.sweep is None):
        raise ValueError("give checkpoint=PATH, or sweep=NAME for all finished runs of a sweep: one of both")
    if cfg.sweep is not None and cfg.result is not None:
        raise ValueError("sweep= adds to the result of each run: leave out result=")
    require_target(cfg.result, files_of(cfg, "checkpoint", *OWN_TEXT))


def runs_of(sweep: str) -> list[Path]:
    """The checkpoints of the finished runs that the record of a sweep names. ValueError where there are none."""
    require_file_name("sweep", sweep)
    record = FOLDER / f"{sweep}.json"
    require_record(sweep)
    paths = dict.fromkeys(Path(job.run_dir) / BEST for job in read_record(record))
    results = ((path, read_result(path.parent)) for path in paths if path.exists())
    found = [path for path, result in results if result and result["status"] == "completed"]
    if not found:
        raise ValueError(
            f"{record} names no finished run: train some with `python src/train.py -m sweeps={sweep}`"
        )
    return found


def is_measured(result: Mapping[str, Any], cfg: DictConfig) -> bool:
    """Whether a result holds what this command would measure."""
    held = result.get(MEMORY, {})
    asked = {key: cfg[key] for key in SETTINGS}
    return bool(held.get("schema_version") == MEMORY_VERSION and held.get("settings") == asked)


def measure(path: Path, scorer: NetworkScorer, cfg: DictConfig) -> dict[str, Any]:
    """All measurements of one checkpoint, in plain values; `summary` holds the numbers that tables compare."""
    ids = open_corpus(scorer, cfg).tokens(cfg.split)
    places = find_places(len(ids), 2 * cfg.lags, cfg.windows)
    if len(places) < cfg.windows:
        raise ValueError(
            f"the text has {len(places):,} places behind {2 * cfg.lags:,} tokens, got windows={cfg.windows}: lower it"
        )
    known = measure_known(scorer, ids, cfg.lags, cfg.targets)
    stages = [measure_stage(stage, ids, places, cfg.lags) for stage in find_stages(path, scorer)]
    card, last = scorer.card, stages[-1]
    assert card is not None
    return {
        "schema_version": MEMORY_VERSION,
        "checkpoint": path.name,
        **{key: card[key] for key in ("name", "seed")},
        "settings": {key: cfg[key] for key in SETTINGS},
        "corpus": {key: card["data"][key] for key in ("name", "text_checksum")},
        "summary": summarise(stages, known),
        "stages": stages,
        "known": known,
        "factors": measure_factors(scorer.network, scorer.vocabulary.words, scorer.vocabulary.counts),
        "dtype": {"known": "fp32", "gradient": last["dtype"], "signals": last["dtype"]},
        "device": device_name(scorer.network.device),
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        **commit(),
    }


def measure_known(scorer: NetworkScorer, ids: np.ndarray, lags: int, targets: int) -> dict[str, Any]:
    """Perplexity by the number of known words (`hornn.analysis.known_words`), by the network's fast backends."""
    blocks = find_blocks(len(ids), lags, targets)
    scorer.prepare(batch_size=1, seq_len=CHUNK, dynamic_lr=None, precision="fp32")
    whole = scorer.score(ids[: blocks.max() + 1])[blocks.ravel()]
    require_probabilities(float(whole.mean()), scorer.name)
    known = score_known(scorer.network, ids, blocks, lags)
    return describe_known(known, whole, ids[blocks.ravel()], list(scorer.vocabulary.counts))


def measure_stage(stage: Stage, ids: np.ndarray, places: np.ndarray, lags: int) -> dict[str, Any]:
    """Gradients and signals, in float64 and step by step as the cells are written."""
    network = stage.network.double().eval().requires_grad_(False)
    network.backend, network.precision = "eager", "auto"  # whatever trained it
    network.prepare(network.device)
    return {
        "stage": stage.name,
        "epoch": stage.epoch,
        "gradient": measure_gradients(network, ids, places, lags),
        **measure_signals(network, ids, places, lags),
        "dtype": "float64",
    }


def summarise(stages: list[dict[str, Any]], known: dict[str, Any]) -> dict[str, Any]:
    """The numbers by which networks are compared: docs/memory.md defines them.

    What they say of the weights before training is left out where nobody knows these.
    """
    start, last = next((stage for stage in stages if stage["stage"] == START), None), stages[-1]
    signals = {}
    if path := last["paths"].get(POOLED):
        signals = {"pooled_rms": path["rms"], "pooled_range": path["high"] - path["low"]}
        if start and (before := start["paths"][POOLED]["rms"]):
            signals["pooled_growth"] = path["rms"] / before
    return {
        "gradient_reach": reach(last["gradient"]),
        **({"gradient_reach_at_start": reach(start["gradient"])} if start else {}),
        "effective_memory": effective_memory(known),
        "saturation": last["saturation"][-1],
        **signals,
    }


def rounded(value: Any) -> Any:
    """The nested value, each number that is not whole to five digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
