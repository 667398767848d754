"""Music that a network writes: sampled frame by frame, kept as a MIDI file and as a picture."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from omegaconf import DictConfig
from rich.console import Console

from hornn.checks import require_package, require_positive, require_range, require_seed, require_temperature
from hornn.data.music import KEYS, MusicData
from hornn.network import SequenceModel
from hornn.result import replacing
from hornn.shown import shown
from hornn.use.figures import files_of, require_target
from hornn.use.sequences import SequenceScorer, open_data, require_neutral

LOWEST = 21  # the note of MIDI that key 0 is
BEAT = 480  # MIDI's ticks in a quarter note; 120 quarter notes last a minute
TICKS = 240  # of a frame: an eighth note; the files do not say how long a frame is
# The chorales here are those of a split whose frames are known to be quarter notes.
OF_SET = {"music-jsb_chorales": BEAT}
VELOCITY = 80
FRAMES = 50  # of a piece that are read first, unless `frames=` says otherwise
# Keys of `generate` that speak of text, beside the prompt, and their neutral values.
OF_TEXT = {"top_k": None, "top_p": None, "allow_unk": False, "json": False}


def write_music(cfg: DictConfig, scorer: SequenceScorer, console: Console) -> None:
    """Write continuations as MIDI files with their pictures, and say where they are.

    Raises ValueError or OSError, before anything is written, for keys that this model cannot serve.
    """
    if scorer.card["input_width"] != KEYS:
        raise ValueError(f"{scorer.name} is no model of music: transcribe is what uses one of speech")
    require_package("mido", "writing MIDI files")
    require_package("matplotlib", "drawing them")
    require_positive(num_samples=cfg.num_samples, length=cfg.length, frames=cfg.frames)
    require_temperature(cfg.temperature)
    require_seed(cfg.seed)
    if cfg.to is None or Path(str(cfg.to)).suffix != ".mid":
        raise ValueError(f"to= must be the path of a MIDI file, which ends in .mid, got {cfg.to}")
    if cfg.prompt:
        raise ValueError("prompt= is text, and this model writes music: give piece=NUMBER, or leave it out")
    require_neutral(cfg, OF_TEXT, "text", scorer.name)
    if cfg.piece is None and cfg.frames != FRAMES:
        raise ValueError(f"frames={cfg.frames} are read of a piece: give piece=NUMBER, or leave it out")
    paths = targets(Path(str(cfg.to)), cfg.num_samples)
    for path in paths:
        picture = path.with_suffix(".png")
        require_target(path, files_of(cfg, "checkpoint"))
        require_target(picture)
        if picture.exists() and not path.exists():
            raise ValueError(f"{picture}, the name of the picture, is taken: give another to=")
    silence = np.zeros((0, KEYS), dtype=np.uint8)
    piece = silence if cfg.piece is None else piece_of(scorer, cfg)[: cfg.frames + cfg.length]
    prompt = piece[: cfg.frames]
    card = scorer.card
    who = shown(f"{card['choices']['model']} on {card['data']['name']}, seed {card['seed']}")
    title = f"{who}: {len(prompt)} frames given, {cfg.length} written"
    generator = torch.Generator().manual_seed(cfg.seed)
    for path in paths:
        frames = [*prompt, *sample(scorer.network, prompt, cfg.length, cfg.temperature, generator)]
        write_midi(path, np.array(frames), OF_SET.get(card["data"]["name"], TICKS))
        rolls = {title: np.array(frames)} | ({"the piece itself": piece} if len(piece) else {})
        draw(path.with_suffix(".png"), rolls, len(prompt))
        said = f"{path}, {path.with_suffix('.png')}: {len(prompt)} frames given, {cfg.length} written"
        console.print(said, markup=False)


def targets(target: Path, number: int) -> list[Path]:
    """The MIDI files of so many samples."""
    return [target] if number == 1 else [target.with_stem(f"{target.stem}-{n + 1}") for n in range(number)]


def piece_of(scorer: SequenceScorer, cfg: DictConfig) -> np.ndarray:
    """The piece of the test split that is to be continued. ValueError for a number that it does not have."""
    data = open_data(scorer, cfg.data, 1, 1)
    if not isinstance(data, MusicData):
        raise ValueError(f"{scorer.name} was trained on {data.name}, which is no music: leave out piece=")
    pieces = data.whole("test")
    holds = type(cfg.piece) is int and 1 <= cfg.piece <= len(pieces)
    require_range("piece", cfg.piece, f"from 1 to {len(pieces)}", holds)
    piece: np.ndarray = pieces[cfg.piece - 1]
    return piece


@torch.inference_mode()
def sample(
    network: SequenceModel, prompt: np.ndarray, length: int, temperature: float, generator: torch.Generator
) -> Iterator[np.ndarray]:
    """Yield `length` frames (88,) that continue `prompt` (N, 88), each key drawn with sigmoid(logit / temperature).

    Temperature 0 takes the likelier of the two. Raises ValueError for a network without finite probabilities.
    """
    state = network.initial_state(1)
    read = np.concatenate([np.zeros((1, KEYS)), prompt]).astype(np.float32)  # silence comes first
    for _ in range(length):
        features, state = network(torch.from_numpy(read).unsqueeze(1).to(network.device), state)
        log_p = network.head.log_probs(features[-1, 0]).double().cpu()
        if log_p.isnan().any():
            raise ValueError("the model gives no finite probabilities: its weights have diverged")
        logits = log_p.exp().logit(eps=1e-12)
        if temperature == 0:
            frame = logits > 0
        else:
            frame = (
                torch.rand(KEYS, generator=generator, dtype=torch.float64) < (logits / temperature).sigmoid()
            )
        read = frame.float().numpy()[None]
        yield read[0].astype(np.uint8)


def write_midi(path: Path, frames: np.ndarray, ticks: int = TICKS) -> None:
    """Write frames (N, 88) of 0 and 1, of so many `ticks` each, as one track of N frames.

    A key that goes on from frame to frame is one long note.
    """
    import mido

    track = mido.MidiTrack()
    before, last = np.zeros(KEYS, dtype=bool), 0
    for step, frame in enumerate([*(frames > 0), np.zeros(KEYS, dtype=bool)]):
        for key in np.flatnonzero(frame != before):
            kind, velocity = ("note_on", VELOCITY) if frame[key] else ("note_off", 0)
            track.append(
                mido.Message(kind, note=LOWEST + int(key), velocity=velocity, time=(step - last) * ticks)
            )
            last = step
        before = frame
    track.append(mido.MetaMessage("end_of_track", time=(len(frames) - last) * ticks))  # silence lasts, too
    file = mido.MidiFile(ticks_per_beat=BEAT)
    file.tracks.append(track)
    with replacing(path) as written:
        file.save(file=written)


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
