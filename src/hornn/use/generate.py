"""Writes text, or music, with a trained model."""

from pathlib import Path

from omegaconf import MISSING, DictConfig, OmegaConf

from hornn.data.vocabulary import UNK
from hornn.shown import shown_lines
from hornn.use.checkpoints import open_checkpoint
from hornn.use.figures import as_json, console_of_texts
from hornn.use.model import TEMPERATURE, Model
from hornn.use.music import FRAMES, write_music
from hornn.use.sequences import SequenceScorer, require_neutral

# Keys that speak of music, and their neutral values.
OF_MUSIC = {"to": None, "midi": None, "piece": None, "frames": FRAMES, "frame_length": None}

console = console_of_texts()


def generate(cfg: DictConfig) -> None:
    """Print continuations of a prompt, or write music. Raises ValueError for a prompt outside the vocabulary."""
    opened = open_checkpoint(Path(str(cfg.checkpoint)), cfg.device)
    if isinstance(opened, SequenceScorer):
        write_music(cfg, opened, console)
        return
    require_neutral(cfg, OF_MUSIC, "music", opened.name)
    model = Model(opened)
    given = MISSING if OmegaConf.is_missing(cfg, "prompt") else cfg.prompt  # `???` is a text like any other
    prompt = "" if given is None else str(given)
    if opened.vocabulary.unk_id is not None and (unknown := model.unknown(prompt)):
        note = f"not in the vocabulary, read as {UNK}: {' '.join(unknown)}"
        console_of_texts(stderr=True).print(note, style="yellow", markup=False)
    temperature = TEMPERATURE if cfg.temperature is None else cfg.temperature
    written = model.generate(
        prompt, cfg.length, temperature, cfg.top_k, cfg.top_p, cfg.num_samples, cfg.seed, cfg.allow_unk
    )
    between = "\n" * any("\n" in text for text in written)  # a blank line, where samples have several lines
    for number, text in enumerate(written, start=1):
        if cfg.json:
            print(as_json({"sample": number, "prompt": prompt, "text": text}))
        else:
            console.print(between * (number > 1) + shown_lines(text), markup=False)
