"""A small piece of music."""

import numpy as np

from hornn.data.midi import KEYS


def piece(length: int, seed: int = 0) -> np.ndarray:
    """Frames (length, 88), of which the first and the last have a note."""
    frames = (np.random.default_rng(seed).random((length, KEYS)) < 0.1).astype(np.uint8)
    frames[[0, -1], 40] = 1
    return frames
