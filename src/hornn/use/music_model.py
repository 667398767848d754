"""A trained model of music in Python: `hornn.load_music` and what can be done with what it gives."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from hornn.card import looked_up_in
from hornn.checks import require_path, require_positive, require_seed, require_temperature
from hornn.data.midi import KEYS, read_midi, require_frames
from hornn.network import SequenceModel
from hornn.use.checkpoints import open_checkpoint
from hornn.use.figures import require_probabilities
from hornn.use.pieces import GivenMusic, frame_length_of, require_music
from hornn.use.scoring import CHUNK
from hornn.use.sequences import SequenceScorer, score_split

Piece = str | Path | np.ndarray  # a MIDI file, or frames (N, 88) of 0 and 1
TEMPERATURE = 1.0  # of music, unless another one is asked for: a lower one thins it out


class PieceScore(NamedTuple):
    """What a model says of one piece: the natural logarithm of its probability, and its frames."""

    log_prob: float
    frames: int

    @property
    def nats_per_frame(self) -> float:
        return -self.log_prob / self.frames


class MusicModel:
    """A network of music, or key frequencies. frame_length: of its frames, in quarter notes."""

    def __init__(self, scorer: SequenceScorer, frame_length: float | None = None) -> None:
        require_music(scorer.card, scorer.name)
        self.scorer = scorer
        self.frame_length = frame_length_of(scorer.card, frame_length)

    @property
    def network(self) -> SequenceModel:
        """ValueError for a model of counts."""
        return self.scorer.network

    def score(self, pieces: Sequence[Piece], batch_size: int = 20) -> list[PieceScore]:
        """The score of each piece by itself, `batch_size` side by side. Raises what `frames_of` raises."""
        require_positive(batch_size=batch_size)
        if isinstance(pieces, Piece) or not isinstance(pieces, Iterable):
            raise ValueError(f"score takes a list of pieces, got {pieces!r:.80}: put one piece into a list")
        frames = [self.frames_of(piece) for piece in pieces]
        if not frames:
            return []
        split = score_split(self.scorer.model, GivenMusic(frames, batch_size, CHUNK), "test")
        require_probabilities(split.mean, self.scorer.name)
        return [PieceScore(-float(nats), len(piece)) for nats, piece in zip(split.nats, frames, strict=True)]

    def generate(
        self,
        piece: Piece | None = None,
        length: int = 50,
        frames: int | None = None,
        temperature: float = TEMPERATURE,
        num_samples: int = 1,
        seed: int = 1,
    ) -> list[np.ndarray]:
        """`num_samples` continuations of a piece by `length` frames, (N + length, 88) each, the piece included.

        Without a piece the music begins in silence. frames: of the piece that are read, all of them by default.
        temperature: a key is drawn with sigmoid(logit / temperature); below 1 keys of a probability below 0.5 sound
        more rarely, and 0 takes the likelier of the two.
        Raises what `frames_of` raises, and ValueError for a model of counts and for other arguments.
        """
        require_positive(length=length, num_samples=num_samples, frames=1 if frames is None else frames)
        require_temperature(temperature)
        if piece is None and frames is not None:
            raise ValueError(f"frames={frames} are read of a piece: give one, or leave it out")
        seed = require_seed(seed)
        prompt = np.zeros((0, KEYS), dtype=np.uint8) if piece is None else self.frames_of(piece)[:frames]
        generator = torch.Generator().manual_seed(seed)
        return [
            np.array([*prompt, *sample(self.network, prompt, length, temperature, generator)])
            for _ in range(num_samples)
        ]

    def frames_of(self, piece: Piece) -> np.ndarray:
        """The frames (N, 88) of a piece. Raises what `read_midi` raises, and ValueError for an array of others."""
        if isinstance(piece, str | Path):
            return read_midi(piece, self.frame_length)[0]
        require_frames(piece)
        return piece.astype(np.uint8)


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
        with network.evaluating():
            features, state = network(torch.from_numpy(read).unsqueeze(1).to(network.device), state)
            log_p = network.head.log_probs(features[-1, 0]).double().cpu()
        if log_p.isnan().any():
            raise ValueError("the model gives no finite probabilities: its weights have diverged")
        logits = log_p.exp().logit(eps=1e-12)
        if temperature == 0:
            frame = logits > 0
        else:
            drawn = torch.rand(KEYS, generator=generator, dtype=torch.float64, device="cpu")
            frame = drawn < (logits / temperature).sigmoid()
        read = frame.float().numpy()[None]
        yield read[0].astype(np.uint8)


def load_music(
    path: str | Path,
    frame_length: float | None = None,
    device: str | torch.device = "cpu",
    config_dir: str | Path | None = None,
) -> MusicModel:
    """The model of music of a checkpoint.

    frame_length: of its frames, in quarter notes; None: as its data say, or 0.5. device, config_dir: as of
    `hornn.load`. Raises FileNotFoundError or ValueError for a file that is absent, damaged or holds another model.
    """
    require_path("load_music", path)
    with looked_up_in(config_dir):
        opened = open_checkpoint(Path(path), device)
    if not isinstance(opened, SequenceScorer):
        raise ValueError(f"{path} holds a model of text: hornn.load takes it")
    return MusicModel(opened, frame_length)
