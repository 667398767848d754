"""The end-to-end memory network."""

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, saturation
from hornn.checks import require_depth, require_positive, require_truth

QUERY = 0.1  # every unit of the first u (released code)


class MemoryState(NamedTuple):
    memory: Tensor  # (M - 1, B, 2 H), [a, c] of past words, oldest first
    filled: Tensor  # (M - 1, B, 1), 0 where no word has come yet, 1 where one has


class MemN2N(Cell):
    """A network that asks the last M words `hops` times what comes next.

        a_j = A x_j,  c_j = C x_j             for the words j = 1..M of the memory, x_M = x_t the newest
        u <- 0.1                              in every unit
        p_j = softmax_j(u . (a_j + T_A[j]))   in each hop; p_j = u . (a_j + T_A[j]) where it is `linear`
        o = sum_j p_j (c_j + T_C[j])
        u <- g(H u + o)
        y_t = u                               after the last hop

    g leaves the first `linear_size` units as they are and is max(0, .) of the others (None: half of the H units are
    linear). A, C, T_A, T_C and H are the same in every hop (the paper's layer-wise tying). A `linear` network has the
    weights of the other one, for which it is a start (the linear start of the paper, as recalled).

    x_t (B, I), u (B, H), M = `memory_size`; A, C (H, I), T_A, T_C (M, H), H (H, H). In the paper x is one-hot, so
    that A and C are embeddings: with `embedded_input` there are no A and C and the input is already
    [A x_t, C x_t], looked up in an embedding table of width `input_size` = 2 H. Without it they stand on top of the
    embedding. Slots that no word has reached yet are left out of the softmax.

    Source: Sukhbaatar, Szlam, Weston & Fergus, "End-to-end memory networks" (2015), sections 2 and 5, and the code
    released with it, facebookarchive/MemNN. Departures: that code trains on positions drawn at random and scores no
    position whose memory is not full; we read a text in order and score every word. Words that lie before the chunk
    (before network.bptt_window) are remembered as they were then, so that A and C learn nothing from them.
    Raises ValueError for a size < 1, a linear_size outside 0..hidden_size, an `input_size` other than 2 H with
    `embedded_input`, a `linear` that is neither true nor false.
    """

    activation = "relu"
    recurrent = ()
    histories: ClassVar = {"memory": -1}
    counters = ("filled",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        hops: int = 7,
        memory_size: int = 200,
        linear_size: int | None = None,
        embedded_input: bool = True,
        linear: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size)
        require_depth(hops=hops)
        require_positive(memory_size=memory_size)
        require_truth(embedded_input=embedded_input, linear=linear)
        if linear_size is None:
            linear_size = hidden_size // 2
        if type(linear_size) is not int or not 0 <= linear_size <= hidden_size:
            raise ValueError(
                f"linear_size must be a whole number from 0 to hidden_size={hidden_size}, or null, got {linear_size!r}"
            )
        if embedded_input and input_size != 2 * hidden_size:
            raise ValueError(
                f"embedded_input=true needs input_size={2 * hidden_size}, twice the hidden_size, got {input_size}:"
                f" set network.embedding_size={2 * hidden_size}, or model.embedded_input=false"
            )
        self.hops = hops
        self.memory_size = memory_size
        self.linear_size = linear_size
        self.linear = linear
        self.A = None if embedded_input else self.weight(hidden_size, input_size)
        self.C = None if embedded_input else self.weight(hidden_size, input_size)
        self.T_A = self.weight(memory_size, hidden_size)
        self.T_C = self.weight(memory_size, hidden_size)
        self.H = self.weight(hidden_size, hidden_size)

    @classmethod
    def embedding_width(cls, hidden_size: int, **arguments: Any) -> int:
        return 2 * hidden_size if arguments.get("embedded_input", True) else hidden_size

    def initial_state(self, batch_size: int) -> MemoryState:
        past = self.memory_size - 1
        return MemoryState(
            self.zeros(past, batch_size, 2 * self.hidden_size), self.zeros(past, batch_size, 1)
        )

    def project_input(self, x: Tensor) -> Tensor:
        """(T, B, I) -> (T, B, 2 H): [a_t, c_t]."""
        if self.A is None or self.C is None:
            return x
        return torch.cat([F.linear(x, self.A), F.linear(x, self.C)], dim=-1)

    def remember(self, u: Tensor, state: MemoryState) -> MemoryState:
        """The state's M - 1 words, then the words of u (T, B, 2 H)."""
        return MemoryState(
            torch.cat([state.memory, u]), torch.cat([state.filled, torch.ones_like(u[..., :1])])
        )

    def attend(self, scores: Tensor, empty: Tensor) -> Tensor:
        """p from the scores (B, ..., M); 0 for the slots without a word."""
        if self.linear:
            return scores.masked_fill(empty, 0.0)
        return scores.masked_fill(empty, -torch.inf).softmax(-1)

    def update(self, u: Tensor, o: Tensor) -> Tensor:
        """g(H u + o)."""
        linear, rectified = (F.linear(u, self.H) + o).tensor_split([self.linear_size], dim=-1)
        return torch.cat([linear, torch.relu(rectified)], dim=-1)

    def step(self, u_t: Tensor, state: MemoryState) -> tuple[Tensor, MemoryState]:
        memory, filled = self.remember(u_t.unsqueeze(0), state)
        a, c = memory.transpose(0, 1).chunk(2, dim=-1)  # (B, M, H) each
        keys, values = a + self.T_A, c + self.T_C
        empty = (filled == 0).squeeze(-1).T  # (B, M)
        u = torch.full_like(a[:, 0], QUERY)
        for _ in range(self.hops):
            scores = (keys @ u.unsqueeze(-1)).squeeze(-1)
            p = self.attend(scores, empty)
            u = self.update(u, (p.unsqueeze(1) @ values).squeeze(1))
        return u, MemoryState(memory[1:], filled[1:])

    def all_steps(self, u: Tensor, state: MemoryState) -> tuple[Tensor, MemoryState]:
        """Every step's question to the words of the chunk and of the memory before it, S = M - 1 + T.

        The memory of step t is the words t .. t + M - 1 of these, so its scores are a band of a (T, S) product, and
        its answer a product with a matrix that is zero outside of this band.
        """
        T = len(u)
        memory, filled = self.remember(u, state)
        a, c = memory.transpose(0, 1).chunk(2, dim=-1)  # (B, S, H) each
        empty = (filled == 0).squeeze(-1).T.unfold(1, self.memory_size, 1)  # (B, T, M)
        question = torch.full_like(a[:, :T], QUERY)
        for _ in range(self.hops):
            scores = read_band(question @ a.mT) + question @ self.T_A.mT
            p = self.attend(scores, empty)
            question = self.update(question, write_band(p) @ c + p @ self.T_C)
        return question.transpose(0, 1), MemoryState(memory[T:], filled[T:])

    def state_after(self, u: Tensor, state: MemoryState) -> MemoryState:
        """The memory after these words, without their questions."""
        memory, filled = self.remember(u, state)
        return MemoryState(memory[len(u) :], filled[len(u) :])

    def saturation(self, y: Tensor) -> float:
        """The saturation of the rectified units."""
        rectified = y[..., self.linear_size :]
        return saturation(rectified, self.activation) if rectified.size(-1) else 0.0


def read_band(full: Tensor) -> Tensor:
    """(B, T, M - 1 + T) -> (B, T, M): of row t the columns t to t + M - 1.

    Row t's band begins t (S + 1) numbers after the first row's, where S is the width, so that the rows of a
    matrix of width S + 1 over the same numbers all begin with theirs.
    """
    B, T, S = full.shape
    return F.pad(full.flatten(1), (0, T)).view(B, T, S + 1)[..., : S - T + 1]


def write_band(band: Tensor) -> Tensor:
    """(B, T, M) -> (B, T, M - 1 + T): the inverse of `read_band`, with zeros outside of the band."""
    B, T, M = band.shape
    S = M - 1 + T
    return F.pad(band, (0, T)).flatten(1)[:, : T * S].view(B, T, S)
