"""What stops a training that has diverged."""

import math
from collections.abc import Iterator, Sequence

# A training has diverged whose loss exceeds DIVERGED times a uniform guess's in LASTING updates in a row. A first
# learning rate too high for the first weights may take dozens of updates to recover from.
DIVERGED, LASTING = 4.0, 100


class DivergenceError(ArithmeticError):
    """A loss or gradient that is not finite, or a loss far above a uniform guess's.

    behind: how many updates were counted before the error was found: the one at fault, and those after it.
    """

    behind = 0


class LossWatch:
    """Looks at the loss of each update. chance_nll: nats of a uniform guess at a `target`, as those are called."""

    def __init__(self, chance_nll: float, target: str) -> None:
        self.limit = DIVERGED * chance_nll
        self.target = target
        self.above = 0  # updates in a row, up to now, whose loss exceeds the limit

    def check(self, nll: float, count: int) -> None:
        """The summed loss of an update on `count` targets. DivergenceError if the training has diverged."""
        mean = nll / count
        self.above = self.above + 1 if mean > self.limit else 0
        if not math.isfinite(mean):
            raise DivergenceError(f"the loss is {mean:.4g} nats per {self.target}")
        if self.above == LASTING:
            limit = f"{self.limit:.4g} nats per {self.target}"
            raise DivergenceError(f"the loss is {mean:.4g}, above {limit} for {LASTING} updates in a row")

    def checked(self, updates: Sequence[tuple[float, float, int]]) -> Iterator[tuple[float, float, int]]:
        """Each update (loss, gradient's norm, targets) before the training diverged, then DivergenceError if it did."""
        for place, (nll, grad_norm, count) in enumerate(updates):
            try:
                self.check(nll, count)
                require_finite(grad_norm)
            except DivergenceError as error:
                error.behind = len(updates) - place
                raise
            yield nll, grad_norm, count


def require_finite_loss(split: str, nll: float) -> float:
    """The mean loss of a split; DivergenceError if it is not finite."""
    if not math.isfinite(nll):
        raise DivergenceError(f"the {split} loss is {nll}")
    return nll


def require_finite(grad_norm: float) -> float:
    """The norm of a gradient; DivergenceError if it is not finite."""
    if not math.isfinite(grad_norm):
        raise DivergenceError(f"the gradient is not finite (its norm is {grad_norm})")
    return grad_norm
