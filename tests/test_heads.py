"""The output layers: exact probabilities, and losses and gradients that agree with them."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.base import Cell
from hornn.heads import softmax, two_level
from hornn.heads.base import Head, resolve_precision
from hornn.heads.softmax import SoftmaxHead
from hornn.heads.two_level import TwoLevelSoftmaxHead
from hornn.kernels import library
from hornn.metrics import perplexity
from hornn.network import SequenceModel
from reference.cases import seeded

T, B, H = 5, 4, 6
COUNTS = [40, 21, 13, 8, 5, 4, 3, 2, 2, 1, 1, 0]  # 100 words; clusters of 1, 2, 7 and 2 at K = 4
V = len(COUNTS)

heads = pytest.mark.parametrize("head_class", [SoftmaxHead, TwoLevelSoftmaxHead])
biases = pytest.mark.parametrize("bias", [False, True])


def build(
    head_class: Callable[..., Head], bias: bool = False, seed: int = 0, counts: Sequence[int] = COUNTS
) -> Head:
    """A head in float64 with every parameter, biases too, drawn at random."""
    options = {"num_clusters": 4} if head_class is TwoLevelSoftmaxHead else {}
    head = head_class(input_size=H, counts=counts, bias=bias, **options).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=seeded(seed), dtype=torch.float64))
    return head


def draw_chunk(seed: int = 1) -> tuple[Tensor, Tensor]:
    """Features (T, B, H) and targets (T, B), of which the last column's are partly padding."""
    features = torch.randn(T, B, H, generator=seeded(seed), dtype=torch.float64)
    targets = torch.randint(V, (T, B), generator=seeded(seed + 1))
    targets[2:, -1] = -1
    return features, targets


@heads
@biases
def test_log_probs_are_normalised(head_class: type[Head], bias: bool) -> None:
    log_p = build(head_class, bias).log_probs(draw_chunk()[0])
    assert log_p.shape == (T, B, V)
    assert_close(log_p.exp().sum(-1), torch.ones(T, B, dtype=torch.float64), rtol=1e-12, atol=1e-12)


@heads
def test_log_probs_of_any_leading_shape(head_class: type[Head]) -> None:
    head, (features, _) = build(head_class), draw_chunk()
    assert_close(head.log_probs(features[0, 0]), head.log_probs(features)[0, 0], rtol=1e-12, atol=1e-12)
    assert head.log_probs(features[None]).shape == (1, T, B, V)


def test_zero_weights_give_the_full_softmax_a_perplexity_of_v() -> None:
    head = SoftmaxHead(H, COUNTS).double()
    torch.nn.init.zeros_(head.W_out)
    features, targets = draw_chunk()
    nll = head.nll(features, targets).detach()
    assert perplexity(float(nll.sum()) / int((targets >= 0).sum())) == pytest.approx(V, rel=1e-14)


def test_zero_weights_give_the_two_level_softmax_uniform_classes_of_uniform_words() -> None:
    head = build(TwoLevelSoftmaxHead)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
    assert head.sizes == [1, 2, 7, 2]
    choices = [4.0, *[4.0 * 2] * 2, *[4.0 * 7] * 7, *[4.0 * 2] * 2]
    expected = -torch.tensor(choices, dtype=torch.float64).log()
    assert_close(head.log_probs(torch.ones(H, dtype=torch.float64)), expected, rtol=1e-14, atol=1e-14)


@heads
@biases
def test_nll_is_minus_the_log_probability_and_nothing_at_padding(head_class: type[Head], bias: bool) -> None:
    head, (features, targets) = build(head_class, bias), draw_chunk()
    nll, log_p = head.nll(features, targets).detach(), head.log_probs(features).detach()
    assert nll.shape == (T, B)
    for t in range(T):
        for column in range(B):
            word = int(targets[t, column])
            expected = 0.0 if word < 0 else -float(log_p[t, column, word])
            assert float(nll[t, column]) == pytest.approx(expected, rel=1e-12)


@heads
@biases
def test_the_loss_and_its_gradients_are_those_of_the_log_probabilities(
    head_class: type[Head], bias: bool
) -> None:
    head, (features, targets) = build(head_class, bias), draw_chunk()
    features.requires_grad_()
    leaves = {"features": features, **dict(head.named_parameters())}
    loss = head.loss(features, targets)
    assert_close(loss, head.nll(features, targets).sum(), rtol=1e-12, atol=1e-12)
    ours = torch.autograd.grad(0.3 * loss, list(leaves.values()))
    picked = head.log_probs(features).gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    expected = torch.autograd.grad(-0.3 * picked[targets >= 0].sum(), list(leaves.values()))
    for key, one, other in zip(leaves, ours, expected, strict=True):
        assert_close(one, other, rtol=1e-11, atol=1e-12, msg=key)


@pytest.mark.parametrize("use_native", [False, True])
@pytest.mark.parametrize("group", [1, 5, 256])
@biases
def test_the_loss_of_two_levels_in_groups_of_clusters(
    bias: bool, group: int, use_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if use_native and library.why_not():
        pytest.skip("needs the native kernels")
    monkeypatch.setattr(two_level, "GROUP", group)
    head, (features, targets) = build(TwoLevelSoftmaxHead, bias), draw_chunk()
    exact = [
        head.loss(features, targets),
        *torch.autograd.grad(head.nll(features, targets).sum(), head.parameters()),
    ]
    head.float()
    head.native = use_native
    loss = head.loss(features.float(), targets)
    for one, other in zip([loss, *torch.autograd.grad(loss, head.parameters())], exact, strict=True):
        assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


@heads
@biases
def test_gradcheck(head_class: type[Head], bias: bool) -> None:
    head, (features, targets) = build(head_class, bias), draw_chunk()
    names = [name for name, _ in head.named_parameters()]

    def loss(features: Tensor, *weights: Tensor) -> Tensor:
        for name, weight in zip(names, weights, strict=True):
            setattr(head, name, weight)
        return head.loss(features, targets)

    leaves = [features, *(parameter.detach() for parameter in head.parameters())]
    for name in names:
        delattr(head, name)
    assert torch.autograd.gradcheck(loss, [leaf.clone().requires_grad_() for leaf in leaves])


@heads
def test_padding_has_no_gradient(head_class: type[Head]) -> None:
    head, (features, targets) = build(head_class), draw_chunk()
    features.requires_grad_()
    head.loss(features, targets).backward()
    assert features.grad is not None
    assert not features.grad[targets < 0].any()
    assert (features.grad[targets >= 0] != 0).any(-1).all()


@heads
def test_a_chunk_of_padding_costs_nothing(head_class: type[Head]) -> None:
    head, (features, targets) = build(head_class), draw_chunk()
    features.requires_grad_()
    loss = head.loss(features, torch.full_like(targets, -1))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert not head.nll(features, torch.full_like(targets, -1)).any()
    assert features.grad is not None
    assert not features.grad.any()


@heads
def test_is_in_fp32_what_it_is_in_float64(head_class: type[Head]) -> None:
    head, (features, targets) = build(head_class), draw_chunk()
    exact = head.loss(features, targets)
    head.float()
    loss = head.loss(features.float(), targets)
    assert loss.dtype == torch.float32
    assert_close(loss.double(), exact, rtol=1e-5, atol=1e-5)


def test_the_full_softmax_in_bf16_is_close_and_leaves_the_scores_alone() -> None:
    head, (features, targets) = SoftmaxHead(H, COUNTS), draw_chunk()
    features = features.float().requires_grad_()
    leaves = [features, head.W_out]
    exact = head.loss(features, targets)
    exact_grads = torch.autograd.grad(exact, leaves)
    scores = head.nll(features, targets)
    head.precision = "bf16"
    loss = head.loss(features, targets)
    assert_close(loss, exact, rtol=1e-2, atol=0)
    for ours, theirs in zip(torch.autograd.grad(loss, leaves), exact_grads, strict=True):
        assert ours.dtype == torch.float32
        assert float((ours - theirs).norm() / theirs.norm()) < 2e-2
    assert_close(head.nll(features, targets), scores, rtol=0, atol=0)


def test_one_cluster_is_the_full_softmax() -> None:
    two_level, full = TwoLevelSoftmaxHead(H, COUNTS, num_clusters=1).double(), SoftmaxHead(H, COUNTS).double()
    full.load_state_dict({"W_out": two_level.W_word})
    features, targets = draw_chunk()
    assert_close(two_level.nll(features, targets), full.nll(features, targets), rtol=1e-12, atol=1e-12)


def test_a_cluster_for_every_word_is_the_full_softmax_of_the_classes() -> None:
    two_level = TwoLevelSoftmaxHead(H, [1] * V, num_clusters=V).double()
    full = SoftmaxHead(H, COUNTS).double()
    full.load_state_dict({"W_out": two_level.W_class})
    features, targets = draw_chunk()
    assert_close(two_level.nll(features, targets), full.nll(features, targets), rtol=1e-12, atol=1e-12)


def test_the_weights_alone_are_in_the_state_dict() -> None:
    assert set(TwoLevelSoftmaxHead(H, COUNTS).state_dict()) == {"W_class", "W_word"}
    assert set(TwoLevelSoftmaxHead(H, COUNTS, bias=True).state_dict()) == {
        "W_class",
        "W_word",
        "b_class",
        "b_word",
    }


class Identity(Cell):
    """The least cell: y_t = x_t."""

    activation = "tanh"

    def __init__(self, input_size: int) -> None:
        super().__init__(input_size, input_size)

    def initial_state(self, batch_size: int) -> tuple[()]:
        return ()

    def project_input(self, x: Tensor) -> Tensor:
        return x

    def step(self, u_t: Tensor, state: tuple[()]) -> tuple[Tensor, tuple[()]]:
        return u_t, state


def test_the_two_level_softmax_says_that_it_works_in_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    network = SequenceModel(COUNTS, Identity, embedding_size=H, head=TwoLevelSoftmaxHead)
    monkeypatch.setattr("hornn.network.resolve_precision", lambda *_: "bf16")  # as on many machines
    network.prepare(torch.device("cpu"))
    assert network.head.precision == "fp32"
    with pytest.raises(ValueError, match=r"network\.precision must be one of auto, fp32, got 'bf16'"):
        SequenceModel(COUNTS, Identity, embedding_size=H, head=TwoLevelSoftmaxHead, precision="bf16")


@pytest.mark.parametrize(
    ("has_bf16", "has_amx", "is_intel", "in_half", "chosen"),
    [
        (False, False, True, False, "fp32"),
        (True, False, True, False, "fp32"),
        (True, False, True, True, "fp16"),
        (True, False, False, False, "bf16"),
        (True, True, True, True, "bf16"),
    ],
)
def test_the_fastest_precision_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
    has_bf16: bool,
    has_amx: bool,
    is_intel: bool,
    in_half: bool,
    chosen: str,
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_bf16)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_amx)
    monkeypatch.setattr("hornn.heads.base.is_intel", lambda: is_intel)
    monkeypatch.setattr("hornn.heads.base.multiplies_in", lambda _: in_half)
    cpu = torch.device("cpu")
    assert resolve_precision("auto", cpu) == chosen
    assert resolve_precision("auto", cpu, native=False) == ("bf16" if chosen == "bf16" else "fp32")
    for device, native in ((cpu, in_half), (cpu, False), (torch.device("meta"), True)):
        if native and device == cpu:
            assert resolve_precision("fp16", cpu) == "fp16"
            continue
        with pytest.raises(ValueError, match=r"precision=fp16 is not supported by this .* AVX-512 FP16"):
            resolve_precision("fp16", device, native)
    if has_bf16:
        assert resolve_precision("bf16", cpu) == "bf16"
        return
    with pytest.raises(ValueError, match="precision=bf16 is not supported by this cpu; use fp32, or auto"):
        resolve_precision("bf16", cpu)


@heads
def test_a_fresh_network_predicts_about_uniformly(head_class: type[Head]) -> None:
    torch.manual_seed(0)
    network = SequenceModel(COUNTS, Identity, embedding_size=H, head=head_class, init_std=1e-6)
    nll = network.head.nll(torch.zeros(1, V, H), torch.arange(V).unsqueeze(0))
    if head_class is SoftmaxHead:
        assert_close(nll, torch.full((1, V), math.log(V)))
    assert_close((-nll).exp().sum(), torch.tensor(1.0))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("use_native", [False, True])
def test_scores_in_bf16_are_close_and_follow_the_weights(use_native: bool, bias: bool) -> None:
    if use_native and library.why_not():
        pytest.skip(str(library.why_not()))
    torch.manual_seed(0)
    head = SoftmaxHead(input_size=16, counts=[1] * 50, bias=bias)
    head.native = use_native
    features, targets = torch.randn(7, 3, 16), torch.randint(50, (7, 3))
    targets[-1, -1] = -1
    for _ in range(2):
        head.scoring = "fp32"
        with torch.no_grad():
            exact = head.nll(features, targets)
            head.scoring = "bf16"
            found = head.nll(features, targets)
        assert not torch.equal(found.float(), exact.float())
        assert_close(found.double(), exact.double(), rtol=0, atol=0.05)  # logits below 4 have a bit of 2^-7
        assert found[-1, -1] == 0
        with torch.no_grad():
            head.W_out.mul_(-1)


def test_scores_in_blocks_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    head = SoftmaxHead(4, [1] * 10)
    features, targets = torch.randn(7, 3, 4), torch.randint(10, (7, 3))
    with torch.no_grad():
        whole = head.nll(features, targets)
        monkeypatch.setattr(softmax, "BLOCK", 50)
        assert_close(head.nll(features, targets), whole)


@heads
def test_chance_is_a_uniform_guess_at_a_word(head_class: type[Head]) -> None:
    assert build(head_class).chance_nll == pytest.approx(math.log(V))
