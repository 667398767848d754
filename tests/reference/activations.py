"""The activation functions f of the papers, element by element."""

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def sigmoid(a: Array) -> Array:
    """1 / (1 + e^-a)."""
    return 1.0 / (1.0 + np.exp(-a))


def relu(a: Array) -> Array:
    """a where a is positive, 0 elsewhere."""
    return np.where(a > 0.0, a, 0.0)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"sigmoid": sigmoid, "tanh": np.tanh, "relu": relu}
