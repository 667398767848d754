"""Writes text with a trained model."""

from pathlib import Path

import torch
from omegaconf import DictConfig
from rich.console import Console

from hornn.checks import require_range
from hornn.data.vocabulary import EOS, UNK
from hornn.use.scorers import load
from hornn.use.scoring import sample

console = Console(highlight=False, soft_wrap=True)


def generate(cfg: DictConfig) -> None:
    """Print a prompt with its continuation. Raises ValueError for a prompt outside the vocabulary."""
    require_range("seed", cfg.seed, "from 0 to 4294967295", 0 <= cfg.seed < 2**32)
    model = load(Path(str(cfg.checkpoint)), cfg.device)
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
        model.reader(),
        vocabulary.encode(prompt),
        cfg.length,
        cfg.temperature,
        generator,
        banned,
    )
    console.print(tokenizer.join([*prompt, *vocabulary.decode(written)]), markup=False)
