"""The use of a checkpoint: `evaluate` scores text, `generate` writes it."""

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from hydra.utils import instantiate
from omegaconf import DictConfig
from rich.console import Console

from hornn.allocator import keep_freed_memory
from hornn.cells.base import require_choice, require_positive
from hornn.checkpoint import CARD, read_checkpoint
from hornn.data.text import SPLITS, TextDataModule, encode_text
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import EOS, UNK, Vocabulary
from hornn.experiment import build_network
from hornn.heads import resolve_precision
from hornn.inference import sample, score_dynamically, score_sentences, score_stream
from hornn.metrics import bits, perplexity
from hornn.network import LanguageModel
from hornn.optim import require_range
from hornn.result import finite, write_atomically

console = Console(highlight=False, soft_wrap=True)


class TrainedModel(NamedTuple):
    """A network with its weights, and what turns text into its ids."""

    network: LanguageModel
    vocabulary: Vocabulary
    tokenizer: Tokenizer
    card: dict[str, Any]


def load_model(path: Path, device: str) -> TrainedModel:
    """Rebuild the model of a checkpoint on `device` (cpu or cuda), which needs nothing beside that file.

    Raises what `read_checkpoint` raises, and ValueError where the weights are of another model than the
    checkpoint says, or the device is not there.
    """
    require_choice("device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device=cuda needs a CUDA device and this machine has none: use device=cpu")
    checkpoint = read_checkpoint(path)
    prefix = "network."
    try:
        card = checkpoint[CARD]
        vocabulary = Vocabulary.from_state(card["vocabulary"])
        tokenizer = Tokenizer.from_state(card["tokenizer"])
        network = build_network(card["model"], card["network"], vocabulary.counts)
        weights = {
            key.removeprefix(prefix): value
            for key, value in checkpoint["state_dict"].items()
            if key.startswith(prefix)
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"checkpoint {path} lacks a part of a model ({error!r}): train it anew") from error
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"checkpoint {path} holds the weights of another model: {reason}") from error
    network.backend = network.precision = "auto"  # here, whatever trained it there
    network.to(device).eval().prepare(torch.device(device))
    return TrainedModel(network, vocabulary, tokenizer, card)


def evaluate(cfg: DictConfig) -> None:
    """Print perplexity, tokens outside the vocabulary and speed of a checkpoint on a split or a text file.

    Raises ValueError or OSError for what cannot be scored, before anything is.
    """
    keep_freed_memory()
    require_positive(batch_size=cfg.batch_size, seq_len=cfg.seq_len)
    if cfg.sentences is not None and cfg.text is None:
        raise ValueError("sentences= writes a score for each line of a text: give text=FILE too")
    if cfg.dynamic_lr is not None and (cfg.sentences is not None or cfg.batch_size != 1):
        raise ValueError(
            "dynamic_lr= learns from the text in its order: leave out sentences= and batch_size="
        )
    for target in (cfg.sentences, cfg.result):
        if target is not None and not Path(str(target)).parent.is_dir():
            raise FileNotFoundError(f"the folder of {target} does not exist: make it, or give another path")
        if target is not None and Path(str(target)).is_dir():
            raise ValueError(f"{target} is a folder: give the path of a file to write")
    model = load_model(Path(str(cfg.checkpoint)), cfg.device)
    head = model.network.head
    require_choice("precision", cfg.precision, head.precisions)
    head.scoring = resolve_precision(cfg.precision, torch.device(cfg.device))
    if "bf16" not in head.precisions:
        head.scoring = "fp32"
    if cfg.dynamic_lr is not None and head.scoring != "fp32":
        raise ValueError(f"dynamic_lr= learns in fp32: leave out precision={cfg.precision}")
    if cfg.text is None:
        ids, unknown = corpus_split(model, cfg)
        lengths = None
    else:
        ids, unknown, lengths = encode_text(Path(str(cfg.text)), model.tokenizer, model.vocabulary)
    started = time.perf_counter()
    if cfg.dynamic_lr is not None:
        start_id = model.vocabulary.eos_id
        nll = float(score_dynamically(model.network, ids, start_id, cfg.seq_len, cfg.dynamic_lr).sum())
        read = f"1 column, state carried, weights updated every {cfg.seq_len} tokens at rate {cfg.dynamic_lr}"
    elif cfg.sentences is None:
        nll = float(
            score_stream(model.network, ids, model.vocabulary.eos_id, cfg.batch_size, cfg.seq_len).sum()
        )
        read = f"{cfg.batch_size} column{'s' * (cfg.batch_size > 1)}, state carried"
    else:
        assert lengths is not None
        scores = score_sentences(model.network, np.split(ids, lengths.cumsum()[:-1]), model.vocabulary.eos_id)
        nll = -float(scores.sum())
        read = "each line from a fresh state"
        write_scores(Path(str(cfg.sentences)), scores, lengths)
    seconds = time.perf_counter() - started
    mean = nll / len(ids)
    figures = {
        "checkpoint": str(cfg.checkpoint),
        "scored": cfg.text or f"{model.card['data']['name']} {cfg.split}",
        "perplexity": perplexity(mean),
        "bits_per_token": bits(mean),
        "tokens": len(ids),
        "out_of_vocabulary": unknown,
        "read_as": read,
        "precision": head.scoring,
        "tokens_per_second": len(ids) / seconds,
    }
    for name, value in figures.items():
        text = (
            f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
        )
        console.print(f"{name.replace('_', ' '):>18}  {text}")
    if cfg.result is not None:
        write_atomically(Path(str(cfg.result)), json.dumps(finite(figures), indent=2) + "\n")


def corpus_split(model: TrainedModel, cfg: DictConfig) -> tuple[np.ndarray, int]:
    """The ids of a split of the corpus that the model was trained on, and how many are `<unk>`.

    Raises ValueError where the corpus at hand is not that corpus.
    """
    require_choice("split", cfg.split, SPLITS)
    config = {**model.card["data_config"], **cfg.data}
    if not str(config["_target_"]).startswith("hornn.data."):
        raise ValueError(
            f"the checkpoint's data must be of hornn.data, got {config['_target_']}: give text=FILE"
        )
    data: TextDataModule = instantiate({**config, "_recursive_": False})
    data.prepare_data()
    data.setup()
    trained_on, here = model.card["data"], data.describe()
    if (
        here["text_checksum"] != trained_on["text_checksum"]
        or data.vocabulary.words != model.vocabulary.words
    ):
        raise ValueError(
            f"the {data.name} text here is not the one that this checkpoint was trained on "
            f"(checksum {here['text_checksum']}, then {trained_on['text_checksum']}): give the same corpus, "
            "or text=FILE"
        )
    ids = data.tokens(cfg.split)
    unk = model.vocabulary.unk_id
    return ids, 0 if unk is None else int((ids == unk).sum())


def write_scores(path: Path, scores: np.ndarray, lengths: np.ndarray) -> None:
    """One JSON object a line: the line's number from 1, its tokens, its natural log-probability."""
    rows = (
        {"line": number, "tokens": int(length), "log_prob": float(score)}
        for number, (score, length) in enumerate(zip(scores, lengths, strict=True), start=1)
    )
    write_atomically(path, "".join(json.dumps(row) + "\n" for row in rows))


def generate(cfg: DictConfig) -> None:
    """Print a prompt with its continuation. Raises ValueError for a prompt outside the vocabulary."""
    require_range("seed", cfg.seed, "from 0 to 4294967295", 0 <= cfg.seed < 2**32)
    model = load_model(Path(str(cfg.checkpoint)), cfg.device)
    vocabulary, tokenizer = model.vocabulary, model.tokenizer
    prompt = [
        token for token in tokenizer.tokens("" if cfg.prompt is None else str(cfg.prompt)) if token != EOS
    ]
    if unknown := [token for token in prompt if token not in vocabulary.index]:
        note = f"not in the vocabulary, read as {UNK}: {' '.join(unknown)}"
        Console(stderr=True, highlight=False, soft_wrap=True).print(note, style="yellow", markup=False)
    generator = torch.Generator().manual_seed(cfg.seed)
    banned = [] if cfg.allow_unk or vocabulary.unk_id is None else [vocabulary.unk_id]
    written = sample(
        model.network,
        [vocabulary.eos_id, *vocabulary.encode(prompt)],
        cfg.length,
        cfg.temperature,
        generator,
        banned,
    )
    console.print(tokenizer.join([*prompt, *vocabulary.decode(written)]), markup=False)
