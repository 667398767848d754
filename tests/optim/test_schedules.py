"""The schedules of the learning rate, against numbers worked by hand."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hornn.optim.schedules import Constant, ConstantThenHalve, Decision, HalveOnPlateau, InverseTime, Schedule


def rates(schedule: Schedule, losses: list[float]) -> list[float]:
    """The multiple of the initial rate in each epoch, given the validation losses at their ends."""
    found = []
    for epoch, loss in enumerate(losses, start=1):
        found.append(schedule.rate(10 * (epoch - 1)))
        if schedule.decide(epoch, 10 * epoch, loss).stop:
            break
    return found


def test_halve_on_plateau() -> None:
    losses = [6.0, 5.5, 5.5, 5.4, 5.6, 5.41, 5.3]
    assert rates(HalveOnPlateau(), losses) == [1, 1, 1, 0.5, 0.5, 0.25, 0.125]


def test_halve_on_plateau_with_a_threshold_compares_with_the_best() -> None:
    # 5.86 is the best, but 0.04 are no improvement; nor are 0.06 if 0.1 is asked.
    losses = [6.0, 5.9, 5.86, 5.80, 5.5]
    assert rates(HalveOnPlateau(threshold=0.05), losses) == [1, 1, 1, 0.5, 0.5]
    assert rates(HalveOnPlateau(threshold=0.1), losses) == [1, 1, 0.5, 0.25, 0.125]


def test_training_stops_instead_of_a_fall_too_many() -> None:
    losses = [6.0, 6.0, 5.0, 5.0, 5.0, 5.0]
    assert rates(HalveOnPlateau(factor=0.1, max_falls=2), losses) == pytest.approx([1, 1, 0.1, 0.1, 0.01])
    assert rates(HalveOnPlateau(max_falls=0), losses) == [1, 1]


def test_patience_forgives_some_epochs_before_each_fall() -> None:
    losses = [6.0, 6.0, 5.0, 5.1, 5.1, 5.1, 5.1, 4.0]
    assert rates(HalveOnPlateau(patience=1), losses) == [1, 1, 1, 1, 1, 0.5, 0.5, 0.25]
    assert rates(HalveOnPlateau(patience=1, max_falls=0), losses) == [1, 1, 1, 1, 1]


def test_plateau_with_a_relative_threshold() -> None:
    strict, lenient = HalveOnPlateau(relative_threshold=0.01), HalveOnPlateau(relative_threshold=-0.01)
    for schedule in (strict, lenient):
        schedule.decide(1, 1, 5.0)
        schedule.decide(2, 2, 4.99)
        schedule.decide(3, 3, 5.02)
    assert (strict.scale, lenient.scale) == (0.25, 1.0)


@pytest.mark.parametrize("restore", [False, True])
def test_the_best_weights_come_back_when_the_rate_falls_and_only_then(restore: bool) -> None:
    schedule = HalveOnPlateau(restore_best=restore)
    asked = [
        schedule.decide(epoch, epoch, loss).restore for epoch, loss in enumerate([6.0, 5.0, 5.0, 4.0], 1)
    ]
    assert asked == [False, False, restore, False]


def test_constant_then_halve() -> None:
    """HORNN paper, 4.2: five epochs at the first learning rate, then 50 % of it, 25 % and so on."""
    falling = [1, 1, 1, 1, 1, 0.5, 0.25, 0.125]
    assert rates(ConstantThenHalve(), [9.0] * 8) == falling
    assert rates(ConstantThenHalve(constant_epochs=1), [9.0] * 2) == [1, 0.5]
    assert rates(Constant(), [9.0] * 3) == [1, 1, 1]


def test_inverse_time_starts_at_the_first_rise() -> None:
    schedule = InverseTime(tau=10)
    rates = []
    for step, nll in ((100, 5.0), (200, 4.0), (250, 4.0), (300, 4.5), (400, 4.0)):
        schedule.decide(1, step, nll)
        rates.append(schedule.rate(step + 5))
    assert rates == pytest.approx([1, 1, 1, 1 / 1.5, 1 / (1 + 105 / 10)])


@pytest.mark.parametrize("schedule", [HalveOnPlateau, ConstantThenHalve, partial(InverseTime, tau=2)])
def test_a_schedule_resumes_from_its_state(schedule: Callable[[], Schedule]) -> None:
    losses = [6.0, 6.0, 5.0, 5.5, 4.0, 4.5, 4.6]
    whole, cut, resumed = schedule(), schedule(), schedule()
    for epoch, loss in enumerate(losses[:4], start=1):
        whole.decide(epoch, epoch, loss)
        cut.decide(epoch, epoch, loss)
    resumed.load_state_dict(cut.state_dict())
    for epoch, loss in enumerate(losses[4:], start=5):
        assert resumed.decide(epoch, epoch, loss) == whole.decide(epoch, epoch, loss)
        assert resumed.rate(epoch) == whole.rate(epoch)


@pytest.mark.parametrize("state", [{"scale": "x"}, {"nonsense": 1}, {"start": [1]}])
def test_a_schedule_refuses_another_s_state(state: dict[str, Any]) -> None:
    schedule = HalveOnPlateau()
    with pytest.raises(TypeError, match="is not of HalveOnPlateau"):
        schedule.load_state_dict(state)
    assert schedule.rate(0) == 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: HalveOnPlateau(factor=1), r"schedule.factor must be in \(0, 1\), got 1"),
        (lambda: HalveOnPlateau(threshold=-1), "schedule.threshold must be >= 0 nats per token, got -1"),
        (lambda: HalveOnPlateau(max_falls=-1), "schedule.max_falls must be >= 0 or null, got -1"),
        (lambda: ConstantThenHalve(constant_epochs=0), "schedule.constant_epochs must be >= 1, got 0"),
        (lambda: ConstantThenHalve(factor=0), r"schedule.factor must be in \(0, 1\), got 0"),
    ],
)
def test_schedules_refuse(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


class MeanOfLosses(Schedule):
    """A schedule of a user's own, whose state is a list."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def decide(self, epoch: int, step: int, valid_nll: float) -> Decision:
        self.losses.append(valid_nll)
        return Decision()


def test_a_state_may_hold_a_list_of_numbers() -> None:
    one, other = MeanOfLosses(), MeanOfLosses()
    rates(one, [2.0, 1.0])
    other.load_state_dict(one.state_dict())
    assert other.losses == [2.0, 1.0]
    with pytest.raises(TypeError, match="is not of MeanOfLosses"):
        other.load_state_dict({"losses": ["2.0"]})
