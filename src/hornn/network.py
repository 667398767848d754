"""The language model: embedding, a stack of recurrent cells, an output layer."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from hornn.cells.base import INIT_STD, Cell, State, require_choice, require_positive, saturation
from hornn.heads import PRECISIONS, SoftmaxHead
from hornn.scan import detach, resolve_backend, scan

NetworkState = tuple[State, ...]  # one state for each layer


class LanguageModel(nn.Module):
    """P(w_t | w_1 .. w_{t-1}) by an embedding, `num_layers` cells on top of each other and a softmax.

        x_t = E[w_{t-1}],   h_t = cells(x_t, state),   P(w_t) = softmax(W_out h_t [+ b_out])

    E (V, embedding_size), W_out (V, H). `cell` is called with `input_size=` for each layer; its other
    arguments are bound. All weights are drawn from N(0, init_std^2); biases start at 0.

    Source: HORNN paper, section 4 and equation (2); that the embedding is followed by W_in is deduced
    from its weight counts. Raises ValueError for a size < 1, an
    init_std <= 0, an unknown precision or backend.
    """

    def __init__(
        self,
        vocab_size: int,
        cell: Callable[..., Cell],
        embedding_size: int,
        num_layers: int = 1,
        init_std: float = INIT_STD,
        output_bias: bool = False,
        precision: str = "auto",
        backend: str = "auto",
    ) -> None:
        super().__init__()
        require_positive(vocab_size=vocab_size, embedding_size=embedding_size, num_layers=num_layers)
        require_choice("network.precision", precision, PRECISIONS)
        if not init_std > 0:
            raise ValueError(f"network.init_std must be > 0, got {init_std!r}")
        self.precision = precision
        self.backend = resolve_backend(backend)
        self.embedding = nn.Embedding(
            vocab_size, embedding_size, _weight=Cell.weight(vocab_size, embedding_size).data
        )
        cells = [cell(input_size=embedding_size)]
        for _ in range(num_layers - 1):
            cells.append(cell(input_size=cells[-1].output_size))
        self.cells = nn.ModuleList(cells)
        self.head = SoftmaxHead(cells[-1].output_size, vocab_size, output_bias)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.mul_(init_std / INIT_STD)

    @property
    def num_parameters(self) -> int:
        """Trained weights, all layers together."""
        return sum(parameter.numel() for parameter in self.parameters())

    def initial_state(self, batch_size: int) -> NetworkState:
        return tuple(cell.initial_state(batch_size) for cell in self.cells)  # type: ignore[operator]

    def forward(self, inputs: Tensor, state: NetworkState) -> tuple[Tensor, NetworkState]:
        """Token ids (T, B) and the state before them -> features (T, B, H) and the detached state after."""
        x = self.embedding(inputs)
        after = []
        for cell, cell_state in zip(self.cells, state, strict=True):
            x, cell_state = scan(cell, x, cell_state)  # type: ignore[arg-type]
            after.append(detach(cell_state))
        return x, tuple(after)

    def saturation(self, features: Tensor) -> float:
        """The share of the last layer's outputs (T, B, H) whose gradient is nearly lost."""
        return saturation(features, self.cells[-1].activation)  # type: ignore[arg-type]
