"""SRN and SCRN against their transcriptions, in the limits of their equations, and their sizes."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.elman import Rnn
from hornn.cells.scrn import Scrn, Srn
from hornn.kernels import reduced
from hornn.scan import scan
from reference.activations import sigmoid
from reference.cases import as_arrays, build_cell, draw, draw_state, fill, seeded, weights_of
from reference.scrn import scrn, srn

T, B, INPUT, H, C = 7, 3, 4, 6, 5
CONTEXT_INPUTS = ("current", "previous")
WIDTHS = [(H, C), (H, 0), (0, C)]


def input_width(embedded: bool, width: int) -> int:
    return width if embedded else INPUT


def weights_for_reference(cell: Any) -> dict[str, np.ndarray]:
    """Parameters, and the empty matrices of a layer without units."""
    return weights_of(cell) | {name: buffer.numpy() for name, buffer in cell.named_buffers()}


@pytest.mark.parametrize("embedded", [False, True])
def test_srn_equals_the_transcription(embedded: bool) -> None:
    generator = seeded(1)
    cell = fill(Srn(input_width(embedded, H), H, embedded_input=embedded), generator)
    x, state = draw(generator, T, B, cell.input_size), draw_state(cell, B, generator)
    y, last = scan(cell, x, state)
    expected_y, (expected_h,) = srn(x.numpy(), as_arrays(state), **weights_of(cell))
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(last.h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("hidden", "context"), WIDTHS)
@pytest.mark.parametrize(
    ("adaptive", "context_input", "embedded"), [*product([False, True], CONTEXT_INPUTS, [False, True])]
)
def test_scrn_equals_the_transcription(
    hidden: int, context: int, adaptive: bool, context_input: str, embedded: bool
) -> None:
    generator = seeded(2)
    cell = fill(
        Scrn(
            input_width(embedded, hidden + context),
            hidden,
            context,
            alpha=0.8,
            adaptive=adaptive,
            context_input=context_input,
            embedded_input=embedded,
        ),
        generator,
    )
    x, state = draw(generator, T, B, cell.input_size), draw_state(cell, B, generator)
    y, last = scan(cell, x, state)
    expected_y, (expected_h, expected_s) = scrn(
        x.numpy(), as_arrays(state), **weights_for_reference(cell), alpha=0.8, context_input=context_input
    )
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(last.h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)
    assert_close(last.s, torch.from_numpy(expected_s), rtol=1e-12, atol=1e-12)


def test_srn_is_the_rnn() -> None:
    generator = seeded(3)
    cell = fill(Srn(INPUT, H, embedded_input=False), generator)
    rnn = Rnn(INPUT, H).double()
    rnn.load_state_dict({"W_in": cell.A.detach(), "W_h": cell.R.detach()})
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    assert_close(
        scan(cell, x, state)[0],
        scan(rnn, x, type(rnn.initial_state(B))(state.h))[0],
        rtol=1e-14,
        atol=1e-14,
    )


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("context_input", CONTEXT_INPUTS)
def test_scrn_without_context_is_the_srn(context_input: str, adaptive: bool) -> None:
    generator = seeded(4)
    cell = fill(
        Scrn(H, H, context_size=0, context_input=context_input, adaptive=adaptive),
        generator,
    )
    other = Srn(H, H).double()
    other.load_state_dict(cell.state_dict())
    x = draw(generator, T, B, H)
    y, last = scan(cell, x, cell.initial_state(B))
    expected_y, expected_last = scan(other, x, other.initial_state(B))
    assert_close(y, expected_y, rtol=0, atol=0)
    assert_close(last.h, expected_last.h, rtol=0, atol=0)


@pytest.mark.parametrize(("hidden", "context"), [(H, C), (H, 0), (0, C)])
def test_an_input_has_a_gradient_in_bf16_where_a_part_has_no_units(
    hidden: int, context: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def multiply(left: Tensor, right: Tensor, out: Tensor, *how: Any) -> None:
        torch.mm(left, right, out=out)

    monkeypatch.setattr(reduced, "operators", lambda: SimpleNamespace(reduced_product=multiply))
    cell = Scrn(INPUT, hidden, context, embedded_input=False)
    x = torch.ones(T, B, INPUT, requires_grad=True)
    with reduced.LinearsInBf16():
        u = cell.project_input(x)
    assert_close(torch.autograd.grad(u.sum(), x)[0][0, 0], torch.cat([cell.A, cell.B]).sum(0))


def test_scrn_without_hidden_units_is_a_decaying_bag_of_words_without_parameters() -> None:
    cell = Scrn(C, hidden_size=0, context_size=C, alpha=0.9).double()
    assert not list(cell.parameters())
    x = draw(seeded(5), T, B, C)
    y, _ = scan(cell, x, cell.initial_state(B))
    bag = sum(0.1 * 0.9 ** (T - 1 - t) * x[t] for t in range(T))
    assert_close(y[-1], bag, rtol=1e-12, atol=1e-12)


def test_adaptive_scrn_starts_at_the_given_alpha_under_any_scale_of_the_weights() -> None:
    cell = Scrn(H + C, H, C, alpha=0.7, adaptive=True).double()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.mul_(0.5)
    fixed = Scrn(H + C, H, C, alpha=0.7).double()
    fixed.load_state_dict({name: value for name, value in cell.state_dict().items() if name != "beta"})
    x = draw(seeded(6), T, B, H + C)
    y, _ = scan(cell, x, cell.initial_state(B))
    assert_close(y, scan(fixed, x, fixed.initial_state(B))[0], rtol=1e-12, atol=1e-12)


def test_scrn_is_an_srn_with_the_constrained_matrix_of_equation_7() -> None:
    """M = [[R, P], [0, alpha I]] on the state [h, s], sigmoid for h alone; the context is the previous one."""
    generator, alpha = seeded(7), 0.8
    cell = fill(Scrn(H + C, H, C, alpha=alpha, context_input="previous"), generator)
    x, state = draw(generator, T, B, H + C), draw_state(cell, B, generator)
    P, R = cell.P.detach().numpy(), cell.R.detach().numpy()
    M = np.block([[R, P], [np.zeros((C, H)), alpha * np.eye(C)]])
    both = np.concatenate(as_arrays(state), axis=1)
    y, _ = scan(cell, x, state)
    for t in range(T):
        u_t = x[t].numpy() * np.concatenate([np.ones(H), np.full(C, 1 - alpha)])
        both = u_t + both @ M.T
        both[:, :H] = sigmoid(both[:, :H])
        assert_close(y[t], torch.from_numpy(both), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("adaptive", [False, True])
def test_an_embedded_input_is_the_projected_one(adaptive: bool) -> None:
    generator = seeded(8)
    cell = fill(Scrn(INPUT, H, C, adaptive=adaptive, embedded_input=False), generator)
    embedded = Scrn(H + C, H, C, adaptive=adaptive).double()
    embedded.load_state_dict(
        {name: value for name, value in cell.state_dict().items() if name not in ("A", "B")}
    )
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    u = x @ torch.cat([cell.A, cell.B]).detach().T
    assert_close(scan(embedded, u, state), scan(cell, x, state), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("hidden", "context"), WIDTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_states_start_at_zero_even_without_parameters(hidden: int, context: int, dtype: torch.dtype) -> None:
    cell = Scrn(hidden + context, hidden, context).to(dtype)
    state = cell.initial_state(B)
    assert (state.h.shape, state.s.shape) == ((B, hidden), (B, context))
    for tensor in state:
        assert tensor.dtype == dtype
        assert not tensor.any()
    assert {tensor.device.type for tensor in cell.to("meta").initial_state(B)} == {"meta"}


@pytest.mark.parametrize(("hidden", "context"), WIDTHS)
@pytest.mark.parametrize("adaptive", [False, True])
def test_no_parameter_is_empty_and_each_gets_a_gradient(hidden: int, context: int, adaptive: bool) -> None:
    generator = seeded(9)
    cell = fill(Scrn(INPUT, hidden, context, adaptive=adaptive, embedded_input=False), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, _ = scan(cell, x, state)
    (y * draw(generator, *y.shape)).sum().backward()
    for name, parameter in cell.named_parameters():
        assert parameter.numel(), name
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    assert set(cell.state_dict()) == set(dict(cell.named_parameters()))


@pytest.mark.parametrize("context_input", CONTEXT_INPUTS)
def test_gradients_with_learned_weights_are_the_derivatives(context_input: str) -> None:
    """Of what the contract's test leaves out, as neither is the default: beta, and the previous context."""
    generator = seeded(10)
    cell = fill(Scrn(5, 3, 2, adaptive=True, context_input=context_input), generator)
    x, state = draw(generator, 4, 2, 5), draw_state(cell, 2, generator)

    class Outputs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = cell

        def forward(self) -> Tensor:
            return scan(self.cell, x, state)[0]

    module = Outputs()
    names = [name for name, _ in module.named_parameters()]
    parameters = [parameter.detach().clone().requires_grad_() for parameter in module.parameters()]

    def outputs(*parameters: Tensor) -> Tensor:
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), ())

    assert "cell.beta" in names
    assert torch.autograd.gradcheck(outputs, parameters)


@pytest.mark.parametrize(
    ("hidden", "context", "expected"),
    [
        (100, 40, 2 * 10_000 * 140 + 100 * 100 + 100 * 40),
        (90, 10, 2 * 10_000 * 100 + 90 * 90 + 90 * 10),
        (100, 0, 2 * 10_000 * 100 + 100 * 100),
        (0, 50, 2 * 10_000 * 50),
    ],
)
def test_scrn_language_model_has_only_the_matrices_of_the_paper(
    hidden: int, context: int, expected: int
) -> None:
    """A, B (the embedding table), P, R, U, V (the output layer) at 10,000 words; the paper prints no counts."""
    width = hidden + context
    cell = build_cell("scrn", width, hidden_size=hidden, context_size=context)
    assert cell.output_size == width
    table = output = 10_000 * width
    assert table + sum(parameter.numel() for parameter in cell.parameters()) + output == expected


def test_srn_language_model_has_only_the_matrices_of_the_paper() -> None:
    cell = build_cell("srn", 100, hidden_size=100)
    parameters = 2 * 10_000 * 100 + sum(parameter.numel() for parameter in cell.parameters())
    assert parameters == 2_010_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"hidden_size": 0, "context_size": 0}, ["hidden_size", "context_size", "both 0", ">= 1"]),
        ({"context_size": -1}, ["context_size", "-1", ">= 0"]),
        ({"hidden_size": -3}, ["hidden_size", "-3", ">= 0"]),
        ({"context_size": 2.5}, ["context_size", "2.5"]),
        ({"context_input": "next"}, ["context_input", "current, previous", "next"]),
        ({"input_size": 100}, ["input_size", "100 + 40", "network.embedding_size=140"]),
    ],
    ids=str,
)
def test_scrn_refuses(arguments: dict[str, Any], words: list[str]) -> None:
    arguments = {"input_size": 140, "hidden_size": 100, "context_size": 40} | arguments
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        Scrn(**arguments)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"input_size": 50}, ["input_size", "50", "network.embedding_size=100"]),
    ],
    ids=str,
)
def test_srn_refuses(arguments: dict[str, Any], words: list[str]) -> None:
    arguments = {"input_size": 100, "hidden_size": 100} | arguments
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        Srn(**arguments)
    assert all(word in str(caught.value) for word in words), str(caught.value)
