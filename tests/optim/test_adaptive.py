"""Adam and averaged gradient descent, against torch's and by hand."""

import pytest
import torch
from torch.testing import assert_close

from hornn.optim.adaptive import AdamW, AveragedSGD


def test_adamw_is_torchs_with_a_clip() -> None:
    ours, theirs = (torch.nn.Parameter(torch.tensor([3.0, -4.0])) for _ in range(2))
    clipped = AdamW([ours], lr=0.1, clip=1.0)
    plain = torch.optim.AdamW([theirs], lr=0.1)
    for _ in range(3):
        for w, optimizer in ((ours, clipped), (theirs, plain)):
            optimizer.zero_grad()
            (10 * w**2).sum().backward()
            if optimizer is plain:
                torch.nn.utils.clip_grad_norm_([theirs], 1.0)
            version = w._version
            optimizer.step()
            assert w._version > version  # by which a copy in bf16 knows that it is stale
    assert_close(ours, theirs)
    assert clipped.grad_norm > 1


def test_averaged_sgd_learns_at_the_rate_of_this_update() -> None:
    w = torch.nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    optimizer = AveragedSGD([w], lr=1.0)
    for lr, expected in ((1.0, 0.0), (0.5, -0.5), (0.25, -0.75)):
        optimizer.param_groups[0]["lr"] = lr
        w.grad = torch.ones_like(w)
        optimizer.step()
        assert w.item() == expected


@pytest.mark.parametrize("start", [1, 2, 4])
def test_averaged_sgd_swaps_in_the_mean_of_its_weights(start: int) -> None:
    w = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    optimizer = AveragedSGD([w], lr=0.1, start=start)
    seen = []
    for _ in range(6):
        optimizer.zero_grad()
        (w**2).sum().backward()
        optimizer.step()
        seen.append(w.detach().clone())
    last = w.detach().clone()
    optimizer.swap_averages()
    assert_close(w.detach(), torch.stack(seen[start - 1 :]).mean(0))
    optimizer.swap_averages()
    assert_close(w.detach(), last, rtol=0, atol=0)


@pytest.mark.parametrize(("start", "first"), [(1, 4), (3, 4), (5, 5), (6, 6)])
def test_what_is_forgotten_is_left_out_of_the_mean(start: int, first: int) -> None:
    """Three updates, then three from other weights: `start` counts all six."""
    w = torch.nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    optimizer = AveragedSGD([w], lr=0.1, start=start)
    seen = []
    for update in range(1, 7):
        if update == 4:
            w.data.fill_(9.0)
            optimizer.forget()
        w.grad = 2 * w.detach()
        optimizer.step()
        seen.append(w.detach().clone())
    optimizer.swap_averages()
    assert_close(w.detach(), torch.stack(seen[first - 1 :]).mean(0))
