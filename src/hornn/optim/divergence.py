"""What stops a training that has diverged."""

import math


class DivergenceError(ArithmeticError):
    """A loss or gradient that is not finite, or a loss far above a uniform guess's."""


def require_finite(grad_norm: float) -> float:
    """The norm of a gradient; DivergenceError if it is not finite."""
    if not math.isfinite(grad_norm):
        raise DivergenceError(f"the gradient is not finite (its norm is {grad_norm})")
    return grad_norm
