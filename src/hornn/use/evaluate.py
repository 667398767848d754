"""Scores text with a trained model, or with several mixed."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig, ListConfig, OmegaConf
from rich.console import Console

from hornn.baselines.arpa import write_arpa
from hornn.baselines.cache import require_lengths
from hornn.baselines.ngram import BackoffModel
from hornn.build import rebuild_corpus
from hornn.checks import require_choice, require_positive
from hornn.data.text import SPLITS, TextData, encode_text
from hornn.metrics import bits, perplexity
from hornn.result import NAME, finite, read_result, require_writable, write_atomically, write_result
from hornn.run.composed import as_dict
from hornn.run.identity import BEST
from hornn.run.process import set_up_process
from hornn.run.provenance import commit
from hornn.use.scorers import CountScorer, Mixture, NetworkScorer, Scorer, load

console = Console(highlight=False, soft_wrap=True)


def evaluate(cfg: DictConfig) -> None:
    """Print perplexity, tokens outside the vocabulary and speed of a model, or a mixture, on a split or a text file.

    Raises ValueError or OSError for what cannot be scored, before anything is.
    """
    set_up_process()
    check_options(cfg)
    paths, rates = paths_of(cfg), rates_of(cfg)
    scorers = [load(path, cfg.device) for path in paths]
    for scorer in scorers:
        if isinstance(scorer, NetworkScorer):
            scorer.prepare(cfg.batch_size, cfg.seq_len, rates[0] if rates else None, cfg.precision)
        elif cfg.dynamic_lr is not None:
            raise ValueError(
                f"dynamic_lr= updates the weights of a network, and {scorer.name} counts: leave it out"
            )
    run = result_beside(scorers[0], paths[0]) if cfg.record else None
    if run is not None:
        require_writable(paths[0].parent / NAME)
    program = commit() if cfg.record else {}
    if cfg.arpa is not None:
        export(scorers[0], Path(str(cfg.arpa)))
    mixed = mix(scorers, cfg)
    model: Scorer = mixed or scorers[0]
    if cfg.text is None:
        ids = open_corpus(model, cfg).tokens(cfg.split)
        unk = model.vocabulary.unk_id
        unknown = 0 if unk is None else int((ids == unk).sum())
    else:
        ids, unknown, lengths = encode_text(Path(str(cfg.text)), model.tokenizer, model.vocabulary)
    tried = (
        choose_rate(model, rates, open_corpus(model, cfg).tokens("valid")) if len(rates) > 1 or run else {}
    )
    started = time.perf_counter()
    scores = model.score(ids) if cfg.sentences is None else model.score_lines(ids, lengths)
    seconds = time.perf_counter() - started
    mean = float(scores.sum()) / len(ids)
    require_probabilities(mean, model.name, rates)
    if cfg.sentences is not None:
        write_scores(Path(str(cfg.sentences)), -scores, lengths)
    names = [scorer.name for scorer in scorers]
    figures = {
        **({"checkpoint": names[0]} if len(names) == 1 else {"mix": names}),
        "scored": cfg.text or f"{corpus_of(model)['name']} {cfg.split}",
        "perplexity": perplexity(mean),
        "bits_per_token": bits(mean),
        "tokens": len(ids),
        "out_of_vocabulary": unknown,
        "read_as": model.read_as if cfg.sentences is None else "each line from a fresh state",
        "precision": model.precision,
        "tokens_per_second": len(ids) / seconds,
        **(weights_of(mixed) if mixed else {}),
        **({"valid_perplexity_by_rate": tried, "rate_chosen_on": chosen_on(model)} if tried else {}),
        **({} if cfg.arpa is None else {"arpa": str(cfg.arpa)}),
    }
    show(figures)
    if cfg.result is not None:
        write_atomically(Path(str(cfg.result)), json.dumps(finite(figures), indent=2) + "\n")
    if run is not None:
        assert isinstance(model, NetworkScorer)
        lr = model.dynamic_lr
        run["dynamic"] = {
            "lr": lr,
            "seq_len": cfg.seq_len,
            "valid_ppl_by_lr": tried,
            "valid_ppl": tried[str(lr)],
            "test_ppl": figures["perplexity"],
            **program,
        }
        write_result(paths[0].parent, run)
        console.print(f"added to {paths[0].parent / NAME}", markup=False)


def require_probabilities(mean: float, name: str, rates: Sequence[float]) -> None:
    """Raise ValueError where the mean -ln P of a text, in nats, cannot come from a model of text."""
    if not math.isfinite(mean):
        cause = (
            f"dynamic_lr={rates[0]:g} is too large" if rates else "its weights are damaged or have diverged"
        )
        raise ValueError(f"{name} gives no finite score ({mean}): {cause}")
    if mean < 0:
        raise ValueError(f"{name} gives probabilities above 1: it is damaged, make or copy it again")


def check_options(cfg: DictConfig) -> None:
    """Refuse what no model could do, and files that cannot be written."""
    require_positive(batch_size=cfg.batch_size, seq_len=cfg.seq_len)
    require_choice("split", cfg.split, SPLITS)
    if cfg.sentences is not None and cfg.text is None:
        raise ValueError("sentences= writes a score for each line of a text: give text=FILE too")
    if cfg.dynamic_lr is not None and (cfg.sentences is not None or cfg.batch_size != 1):
        raise ValueError(
            "dynamic_lr= learns from the text in its order: leave out sentences= and batch_size="
        )
    if cfg.cache is not None:
        require_lengths("cache", cfg.cache)
        if cfg.sentences is not None:
            raise ValueError(
                "cache= remembers the text before, sentences= scores each line by itself: leave out one of them"
            )
    if cfg.record and (cfg.dynamic_lr is None or cfg.text is not None or cfg.split != "test"):
        raise ValueError(
            "record=true adds the score of the test split with dynamic evaluation to the run's result: give "
            "dynamic_lr=RATE or a list of rates, and leave out text= and split="
        )
    if cfg.dynamic_lr is not None and (cfg.mix is not None or cfg.cache is not None):
        raise ValueError("dynamic_lr= changes the weights as it scores: leave out mix= and cache=")
    for target in (cfg.sentences, cfg.result, cfg.arpa):
        if target is not None and not Path(str(target)).parent.is_dir():
            raise FileNotFoundError(f"the folder of {target} does not exist: make it, or give another path")
        if target is not None and Path(str(target)).is_dir():
            raise ValueError(f"{target} is a folder: give the path of a file to write")
        if target is not None:
            require_writable(Path(str(target)))


def rates_of(cfg: DictConfig) -> list[float]:
    """The rates of `dynamic_lr`, none where it is null. ValueError for an empty list or a rate that is not > 0."""
    if cfg.dynamic_lr is None:
        return []
    rates = list(cfg.dynamic_lr) if isinstance(cfg.dynamic_lr, ListConfig) else [cfg.dynamic_lr]
    if not rates or not all(type(rate) in (float, int) and 0 < rate < math.inf for rate in rates):
        raise ValueError(
            f"dynamic_lr must be > 0 and finite, or a list of such rates, got {cfg.dynamic_lr!r}"
        )
    return [float(rate) for rate in rates]


def result_beside(scorer: Scorer, checkpoint: Path) -> dict[str, Any]:
    """The result of the run that a checkpoint lies in. ValueError where there is none or it is of another run."""
    path = checkpoint.parent / NAME
    result = read_result(checkpoint.parent)
    if result is None:
        raise ValueError(
            f"record=true adds to {path}, which cannot be read: give the best.ckpt of a finished run"
        )
    card = scorer.card or {}
    same = all(result.get(key) == card.get(key) for key in ("name", "seed"))
    if result.get("status") != "completed" or not same or checkpoint.name != BEST:
        raise ValueError(
            f"{path} is not the result of the finished run of {checkpoint}: give the best.ckpt beside it"
        )
    return result


def choose_rate(scorer: Scorer, rates: Sequence[float], valid: np.ndarray) -> dict[str, float]:
    """Leave the scorer with the learning rate that suits the validation text best; the perplexity there by rate."""
    assert isinstance(scorer, NetworkScorer)
    weights = {name: weight.clone() for name, weight in scorer.network.state_dict().items()}
    tried = {}
    for rate in rates:
        scorer.learn_at(rate)
        tried[str(rate)] = perplexity(float(scorer.score(valid).mean()))
        scorer.network.load_state_dict(weights)
    best = min(tried, key=lambda rate: tried[rate] if math.isfinite(tried[rate]) else math.inf)
    scorer.learn_at(float(best))
    return tried


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
    if len(names) > 1 and cfg.arpa is not None:
        raise ValueError("arpa= writes the n-grams of one model: give its checkpoint= and leave out mix=")
    return [Path(name) for name in names]


def export(scorer: Scorer, path: Path) -> None:
    """Write an ARPA file. ValueError for a model that is more or less than n-grams."""
    if not isinstance(scorer, CountScorer) or not isinstance(scorer.model, BackoffModel):
        raise ValueError(
            f"arpa= writes the n-grams of a model such as model=kn; {scorer.name} is of another kind: leave it out"
        )
    write_arpa(path, scorer.model, scorer.vocabulary.words)


def mix(scorers: Sequence[Scorer], cfg: DictConfig) -> Mixture | None:
    """The models and the caches of `cache`, under the weights that suit the validation text; None for one alone."""
    lengths = () if cfg.cache is None else require_lengths("cache", cfg.cache)
    if len(scorers) == 1 and not lengths:
        return None
    mixture = Mixture(scorers, lengths)
    mixture.fit(open_corpus(mixture, cfg).tokens("valid"))
    return mixture


def weights_of(mixture: Mixture) -> dict[str, Any]:
    weights = dict(zip(mixture.parts, map(float, mixture.weights), strict=True))
    return {"weights": weights, "weights_chosen_on": chosen_on(mixture)}


def chosen_on(model: Scorer) -> str:
    """The text that decides what is not trained."""
    corpus = corpus_of(model)
    return f"{corpus['name']} valid{', which is the test text' if corpus['valid_is_test'] else ''}"


def show(figures: Mapping[str, Any]) -> None:
    for name, value in figures.items():
        lines = (
            [f"{each:.4f}  {part}" for part, each in value.items()] if isinstance(value, Mapping) else value
        )
        for number, line in enumerate(lines if isinstance(lines, list) else [lines]):
            text = (
                f"{line:,.2f}" if isinstance(line, float) else f"{line:,}" if isinstance(line, int) else line
            )
            console.print(f"{'' if number else name.replace('_', ' '):>18}  {text}", markup=False)


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
    data = rebuild_corpus(model.card, as_dict(cfg.data))
    data.prepare_data()
    data.setup()
    here = data.describe()
    if (
        here["text_checksum"] != trained_on["text_checksum"]
        or data.vocabulary.words != model.vocabulary.words
    ):
        raise ValueError(
            f"the {data.name} text on this machine is not the one that this checkpoint was trained on "
            f"(checksum {here['text_checksum']}, then {trained_on['text_checksum']}): give the same corpus, "
            "or text=FILE"
        )
    return data


def write_scores(path: Path, log_p: np.ndarray, lengths: np.ndarray) -> None:
    """One JSON object a line: the line's number from 1, its tokens, its natural log-probability."""
    lines = np.split(log_p, lengths.cumsum()[:-1])
    rows = (
        {"line": number, "tokens": int(length), "log_prob": float(line.sum())}
        for number, (line, length) in enumerate(zip(lines, lengths, strict=True), start=1)
    )
    write_atomically(path, "".join(json.dumps(row) + "\n" for row in rows))
