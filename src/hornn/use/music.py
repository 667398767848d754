"""Music that a network writes, kept as MIDI files and as pictures."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from omegaconf import DictConfig
from rich.console import Console

from hornn.checks import require_package, require_positive, require_range, require_seed, require_temperature
from hornn.data.midi import KEYS, describe_left_out, read_midi, write_midi
from hornn.data.music import MusicData, shift
from hornn.shown import shown
from hornn.use.figures import require_target
from hornn.use.music_model import TEMPERATURE, MusicModel
from hornn.use.pieces import files_given
from hornn.use.sequences import SequenceScorer, open_data, require_neutral
from hornn.writing import replacing

FRAMES = 50  # of a piece that are read first, unless `frames=` says otherwise
# Keys of `generate` that speak of text, beside the prompt, and their neutral values.
OF_TEXT = {"top_k": None, "top_p": None, "allow_unk": False, "json": False}


def write_music(cfg: DictConfig, scorer: SequenceScorer, console: Console) -> None:
    """Write continuations as MIDI files with their pictures, and say where they are.

    Raises ValueError or OSError, before anything is written, for keys that this model cannot serve.
    """
    model = MusicModel(scorer, cfg.frame_length)
    card = scorer.card
    require_package("mido", "writing MIDI files")
    require_package("matplotlib", "drawing them")
    require_positive(num_samples=cfg.num_samples, length=cfg.length, frames=cfg.frames)
    temperature = TEMPERATURE if cfg.temperature is None else cfg.temperature
    require_temperature(temperature)
    require_seed(cfg.seed)
    if cfg.to is None or Path(str(cfg.to)).suffix != ".mid":
        raise ValueError(f"to= must be the path of a MIDI file, which ends in .mid, got {cfg.to}")
    if cfg.prompt:
        raise ValueError(
            "prompt= is text, and this model writes music: give midi=FILE or piece=NUMBER instead"
        )
    require_neutral(cfg, OF_TEXT, "text", scorer.name)
    if cfg.midi is not None and cfg.piece is not None:
        raise ValueError(
            f"midi={cfg.midi} and piece={cfg.piece} are both to be continued: leave out one of the two"
        )
    if cfg.midi is None and cfg.piece is None and cfg.frames != FRAMES:
        raise ValueError(
            f"frames={cfg.frames} are read of a piece: give midi=FILE or piece=NUMBER, or leave it out"
        )
    paths = targets(Path(str(cfg.to)), cfg.num_samples)
    read = [Path(str(cfg.checkpoint)), *([] if cfg.midi is None else files_given(cfg.midi))]
    pictures = [path.with_suffix(".png") for path in paths]
    for path, picture in zip(paths, pictures, strict=True):
        require_target(path, read)
        require_target(picture)
        if picture.exists() and not path.exists():
            raise ValueError(f"{picture}, the name of the picture, is taken: give another to=")
    piece = prompt_of(model, cfg, [*paths, *pictures])[: cfg.frames + cfg.length]
    prompt = piece[: cfg.frames]
    who = shown(f"{card['choices']['model']} on {card['data']['name']}, seed {card['seed']}")
    title = f"{who}: {len(prompt)} frames given, {cfg.length} written"
    given = prompt if len(prompt) else None
    written = model.generate(given, cfg.length, None, temperature, cfg.num_samples, cfg.seed)
    for path, picture, frames in zip(paths, pictures, written, strict=True):
        write_midi(path, frames, model.frame_length)
        rolls = {title: frames} | ({"the piece itself": piece} if len(piece) else {})
        draw(picture, rolls, len(prompt))
        notes = begun(frames, len(prompt))
        said = f"{path}, {picture}: {len(prompt)} frames given, {cfg.length} written with {notes} notes"
        console.print(said, markup=False)
        if not notes:
            console.print("no key begins to sound: give a higher temperature=, or a piece", style="yellow")


def begun(frames: np.ndarray, given: int) -> int:
    """How many notes begin in the frames (N, 88) behind the `given` ones."""
    return int((frames > shift(frames))[given:].sum())


def targets(target: Path, number: int) -> list[Path]:
    """The MIDI files of so many samples."""
    return [target] if number == 1 else [target.with_stem(f"{target.stem}-{n + 1}") for n in range(number)]


def prompt_of(model: MusicModel, cfg: DictConfig, written: Iterable[Path]) -> np.ndarray:
    """The piece that is to be continued, of the MIDI file or of the test split; without either, no frames.

    written: as of `data_of`. Raises ValueError or OSError for one that is not there.
    """
    if cfg.midi is not None:
        first, *others = files_given(cfg.midi)
        if others:
            raise ValueError(
                f"midi={cfg.midi} names {len(others) + 1} pieces, and one is continued: give one file"
            )
        frames, left_out = read_midi(first, model.frame_length)
        if left_out:
            print(f"{first}: {describe_left_out(left_out)}", file=sys.stderr)
        return frames
    return np.zeros((0, KEYS), dtype=np.uint8) if cfg.piece is None else piece_of(model.scorer, cfg, written)


def piece_of(scorer: SequenceScorer, cfg: DictConfig, written: Iterable[Path]) -> np.ndarray:
    """The piece of the test split that is to be continued. ValueError for a number that it does not have."""
    data = open_data(scorer, cfg.data, 1, 1, written)
    if not isinstance(data, MusicData):
        raise ValueError(f"{scorer.name} was trained on {data.name}, which is no music: leave out piece=")
    pieces = data.whole("test")
    holds = type(cfg.piece) is int and 1 <= cfg.piece <= len(pieces)
    require_range("piece", cfg.piece, f"from 1 to {len(pieces)}", holds)
    piece: np.ndarray = pieces[cfg.piece - 1]
    return piece


def draw(path: Path, rolls: Mapping[str, np.ndarray], given: int) -> None:
    """Draw frames (N, 88) as piano rolls, each below its title; a line ends the `given` ones."""
    from matplotlib.figure import Figure

    longest = max(map(len, rolls.values()))
    figure = Figure(figsize=(10, 2.6 * len(rolls) + 0.4), layout="constrained")
    places = figure.subplots(len(rolls), sharex=True, squeeze=False)[:, 0]
    for axes, (title, frames) in zip(places, rolls.items(), strict=True):
        axes.imshow(frames.T, aspect="auto", origin="lower", cmap="Greys", interpolation="nearest")
        if given:
            axes.axvline(given - 0.5, color="tab:red")
        axes.set(ylabel="key", title=title, xlim=(-0.5, longest - 0.5))
    places[-1].set_xlabel("frame")
    with replacing(path) as file:
        figure.savefig(file, dpi=80, format="png")
