"""The network: what encodes the input, a stack of recurrent cells, an output layer."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import signature
from threading import Lock

import torch
from torch import Tensor, nn

from hornn.cells.base import INIT_STD, Cell, State, drawn_with
from hornn.checks import (
    is_number,
    require_choice,
    require_depth,
    require_dropout,
    require_positive,
    require_range,
    require_truth,
)
from hornn.columns import drop
from hornn.embedding import LinearEmbedding, WordEmbedding
from hornn.heads.base import Head, resolve_precision
from hornn.heads.softmax import SoftmaxHead
from hornn.initialization import make_sparse
from hornn.kernels.reduced import multiplies_in
from hornn.kernels.table import why_not
from hornn.scan import BACKENDS, choose_backend, detach, scan

NetworkState = tuple[State, ...]  # one state for each layer
SWITCHING = Lock()  # of the mode of a network, which threads may share
REPEATED = 0.75  # of a chunk's words, the share of different ones up to which each is projected once


def detach_all(state: NetworkState) -> NetworkState:
    """The state of all layers, cut off from its history."""
    return tuple(detach(layer) for layer in state)


def natural_width(cell: Callable[..., Cell]) -> int:
    """The width of the embedding that fits below a cell class whose arguments are bound (functools.partial)."""
    if not isinstance(cell, partial):
        raise ValueError("network.embedding_size must be given: the cell does not say what fits below it")
    width: int = cell.func.embedding_width(**cell.keywords)  # type: ignore[attr-defined]
    return width


class SequenceModel(nn.Module):
    """P(y_t | x_1 .. x_t) by an embedding, `num_layers` cells on top of each other and an output layer.

        e_t = E[x_t]  or  E x_t  or  x_t,   h_t = cells(e_t, state),   P(y_t) = head(h_t)

    A language model reads ids, x_t = w_{t-1}, and predicts y_t = w_t. `counts` says how often each of the V outcomes
    occurs in the training data. `input_width` is None where the inputs are ids of these outcomes: E is then a table
    (V, embedding_size), with None as wide as the cell's state, or as its embedded input. Otherwise the inputs are
    vectors of that width: E is a matrix (embedding_size, input_width), with None the first cell reads the vectors as
    they are.

    `cell` is called with `input_size=` for each layer, and above the first with `embedded_input=False`, where it has
    that argument. `head` (see `hornn.heads.base.Head`) is called with `input_size=`, `counts=` and `bias=output_bias`.
    Their other arguments are bound.

    Start: what `Cell.weight` draws is from N(0, init_std^2), the embedding's and the head's from N(0, embedding_std^2)
    and N(0, output_std^2) where given. Biases start at 0, any other parameter as its cell says. With `recurrent_fan_in`
    the matrices that act on a state are sparse (`hornn.initialization.make_sparse`).

    `dropout` drops that share of e_t (or `input_dropout`), of what passes between layers, and of the features; with
    `variational` one mask serves all steps of a chunk (Gal & Ghahramani 2016). `tie_weights` makes W_out the
    embedding (Press & Wolf 2017). `state_grad_norm` bounds the gradient of each state (`hornn.scan`).
    `initial_value` is the first value of every unit of every state; what only counts steps starts as the cell says.

    Source: HORNN paper, section 4 and equation (2); that the embedding is followed by W_in is deduced
    from its weight counts. Raises ValueError for a size < 1, a std < 0, a dropout outside [0, 1), a
    precision that the head does not have, an unknown backend, or sizes that cannot be tied.
    """

    def __init__(
        self,
        counts: Sequence[int],
        cell: Callable[..., Cell],
        embedding_size: int | None = None,
        num_layers: int = 1,
        init_std: float = INIT_STD,
        embedding_std: float | None = None,
        output_std: float | None = None,
        recurrent_fan_in: int | None = None,
        dropout: float = 0.0,
        input_dropout: float | None = None,
        variational: bool = False,
        tie_weights: bool = False,
        state_grad_norm: float | None = None,
        initial_value: float = 0.0,
        head: Callable[..., Head] = SoftmaxHead,
        output_bias: bool = False,
        precision: str = "auto",
        backend: str = "auto",
        input_width: int | None = None,
    ) -> None:
        super().__init__()
        require_positive(vocab_size=len(counts))
        width = embedding_size
        if width is None:
            width = natural_width(cell) if input_width is None else input_width
        require_depth(num_layers=num_layers)
        stds = {"init_std": init_std, "embedding_std": embedding_std, "output_std": output_std}
        for name, std in stds.items():
            require_range(
                f"network.{name}", std, ">= 0 and finite", std is None or (is_number(std) and std >= 0)
            )
        if init_std == 0:
            raise ValueError("network.init_std must be > 0: cells whose weights all start at 0 cannot learn")
        switches = {"variational": variational, "output_bias": output_bias, "tie_weights": tie_weights}
        require_truth(**{f"network.{name}": switch for name, switch in switches.items()})
        rates = {"network.dropout": dropout, "network.input_dropout": input_dropout}
        require_dropout(**{name: rate for name, rate in rates.items() if rate is not None})
        holds = state_grad_norm is None or (is_number(state_grad_norm) and state_grad_norm > 0)
        require_range("network.state_grad_norm", state_grad_norm, "> 0 and finite, or null", holds)
        require_range("network.initial_value", initial_value, "finite", is_number(initial_value))
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.variational = variational
        self.state_grad_norm = state_grad_norm
        self.initial_value = initial_value
        self.precision = precision
        require_choice("network.backend", backend, BACKENDS)
        self.backend = backend
        self.scan_backend = "eager"
        self.loop_precision = "fp32"
        self.native = False
        self.evaluations = 0  # that are under way
        self.modes: dict[nn.Module, bool] = {}  # of the modules before them
        self.missing: str | None = None
        with drawn_with(init_std):
            cells = [cell(input_size=width)]
            # a cell whose input may be embedded already reads a state in a layer above the first
            above = {"embedded_input": False} if "embedded_input" in signature(cell).parameters else {}
            for _ in range(num_layers - 1):
                cells.append(cell(input_size=cells[-1].output_size, **above))
        with drawn_with(init_std if embedding_std is None else embedding_std):
            if input_width is None:
                table = Cell.weight(len(counts), width).data
                self.embedding: nn.Module = WordEmbedding(len(counts), width, _weight=table)
            else:
                self.embedding = (
                    nn.Identity() if embedding_size is None else LinearEmbedding(input_width, width)
                )
        self.cells = nn.ModuleList(cells)
        with drawn_with(init_std if output_std is None else output_std):
            self.head = head(input_size=cells[-1].output_size, counts=counts, bias=output_bias)
        require_choice("network.precision", precision, self.head.precisions)
        if embedding_std is not None and isinstance(self.embedding, nn.Identity):
            raise ValueError(
                f"network.embedding_std={embedding_std} has no effect on vectors that are read as they are: leave it "
                "out, or set network.embedding_size"
            )
        if tie_weights:
            if embedding_std is not None:
                raise ValueError(
                    f"network.embedding_std={embedding_std} has no effect with tie_weights=true, by which the "
                    "embedding is the output layer's matrix: leave it out, or set network.output_std"
                )
            self.tie()
        if recurrent_fan_in is not None:
            require_positive(recurrent_fan_in=recurrent_fan_in)
            for weight in self.recurrent_weights("network.recurrent_fan_in"):
                make_sparse(weight.data, recurrent_fan_in)

    def recurrent_weights(self, key: str) -> list[nn.Parameter]:
        """The matrices of all layers that act on a state, which a key is about. ValueError where there are none."""
        if found := self.weights_on_states():
            return found
        cell: Cell = self.cells[0]  # type: ignore[assignment]
        raise ValueError(
            f"{key} is about matrices that act on a state, and {type(cell).__name__} has none whose name begins as "
            f"its class attribute recurrent={cell.recurrent!r} says: name them there, or leave {key} out"
        )

    def weights_on_states(self) -> list[nn.Parameter]:
        """The matrices of all layers that act on a state; there may be none."""
        cells: list[Cell] = list(self.cells)  # type: ignore[arg-type]
        return [weight for cell in cells for weight in cell.recurrent_weights()]

    def tie(self) -> None:
        """Let the output layer's matrix be the embedding. ValueError where their shapes differ."""
        W_out, table = getattr(self.head, "W_out", None), self.table
        if table is None:
            raise ValueError(
                "network.tie_weights needs inputs that are words, and these are vectors: leave it out"
            )
        if W_out is None:
            raise ValueError(
                "network.tie_weights=true needs an output layer of one matrix, and this one has several: set "
                "network.tie_weights=false, or head=softmax"
            )
        if W_out.shape != table.shape:
            raise ValueError(
                f"network.tie_weights=true needs an output layer as wide as the embedding ({table.size(1)}), and it "
                f"has {W_out.size(1)} inputs: set network.embedding_size={W_out.size(1)}, or network.tie_weights=false"
            )
        self.embedding.weight = W_out

    @property
    def tied(self) -> bool:
        """Whether the output layer's matrix is the embedding."""
        return self.table is not None and self.table is getattr(self.head, "W_out", None)

    @property
    def table(self) -> nn.Parameter | None:
        """The embedding of ids, one row each; None where the inputs are vectors."""
        return self.embedding.weight if isinstance(self.embedding, nn.Embedding) else None  # type: ignore[return-value]

    def spare_rows(self) -> None:
        """Let the gradient of the embedding have the rows of the words that were read, and no others."""
        if isinstance(self.embedding, nn.Embedding):
            self.embedding.sparse = not self.tied

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """x (T, B, W) with dropout, in training: one mask a step, or one for all steps."""
        if not self.training or not rate:
            return x
        return drop(x, rate, same_at_all_steps=self.variational)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Within it nothing is dropped and no autocast holds, whatever mode the network is in.

        Threads may be in it at once: the mode comes back when the last one leaves.
        """
        with SWITCHING:
            if not self.evaluations:
                self.modes = {module: module.training for module in self.modules()}
                self.eval()
            self.evaluations += 1
        try:
            with torch.autocast(self.device.type, enabled=False):
                yield
        finally:
            with SWITCHING:
                self.evaluations -= 1
                if not self.evaluations:
                    for module, training in self.modes.items():
                        module.training = training
                    self.modes = {}

    @property
    def num_parameters(self) -> int:
        """Trained weights, all layers together."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def initial_state(self, batch_size: int) -> NetworkState:
        """The state before the first step: the cells' own, or `initial_value` in every unit where it is not 0."""
        return tuple(self.first_state(cell, batch_size) for cell in self.cells)  # type: ignore[arg-type]

    def first_state(self, cell: Cell, batch_size: int) -> State:
        """The state of one layer before the first step."""
        state = cell.initial_state(batch_size)
        if not self.initial_value:
            return state
        units = {name: tensor for name, tensor in state._asdict().items() if name not in cell.counters}
        return state._replace(**{name: torch.full_like(x, self.initial_value) for name, x in units.items()})

    def prepare(self, device: torch.device) -> None:
        """Choose what runs on `device`: until then the loops run as written, in fp32.

        `scan_backend` is then the backend of the time loop, `loop_precision` and `head.precision` are the precisions of
        the products of the time loop and of the output layer in training. `native` says whether the output layer and
        the update may use the native kernels, which a CPU alone has for them, `missing` why `auto` does without native
        kernels.
        Raises ValueError for a backend or precision that was asked for by name and cannot run there.
        """
        cell: Cell = self.cells[0]  # type: ignore[assignment]
        self.scan_backend = choose_backend(self.backend, cell, device, self.state_grad_norm)
        wanted = self.backend in ("auto", "native")
        self.missing = why_not(device.type == "cuda") if wanted else None
        able = wanted and self.missing is None and device.type == "cpu"
        self.native = able and next(self.parameters()).dtype == torch.float32
        self.head.native = self.native
        resolved = resolve_precision(self.precision, device, self.native)
        self.head.precision = self.head.nearest(resolved)
        natively = self.native and self.scan_backend == "native"
        in_bf16 = resolved == "bf16" and natively and multiplies_in(torch.bfloat16)
        self.loop_precision = "bf16" if in_bf16 else "fp32"

    def forward(self, inputs: Tensor, state: NetworkState) -> tuple[Tensor, NetworkState]:
        """Ids (T, B) or vectors (T, B, I), the state before them -> features (T, B, H), the state after them."""
        y, after = self.run_cells(inputs, state)
        return self.drop(y, self.dropout), after

    def run_cells(
        self, inputs: Tensor, state: NetworkState, last: int | None = None
    ) -> tuple[Tensor, NetworkState]:
        """What `forward` gives, without dropout of the features; of these with `last` the last steps' alone."""
        x, rows = self.embed(inputs)
        in_bf16 = self.training and self.loop_precision == "bf16"
        how = self.state_grad_norm, self.scan_backend
        after: list[State] = []
        for cell, cell_state in zip(self.cells, state, strict=True):
            if after:
                x, rows = self.drop(x, self.dropout), None
            steps = last if len(after) + 1 == len(self.cells) else None  # a layer above reads all of them
            x, cell_state = scan(cell, x, cell_state, *how, rows, in_bf16, steps)  # type: ignore[arg-type]
            after.append(cell_state)
        return x, tuple(after)

    def embed(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the first cell reads: e_t (T, B, W), and None.

        Natively, where enough words of a chunk repeat and no dropout tells them apart, each word once, (1, D, W), and
        which of them each step reads, (T, B).
        """
        dropping = self.training and self.input_dropout > 0
        if self.native and self.table is not None and len(inputs) > 1 and not dropping:
            words, rows = inputs.unique(return_inverse=True)
            if len(words) <= REPEATED * inputs.numel():
                return self.embedding(words[None]), rows
        return self.drop(self.embedding(inputs), self.input_dropout), None

    def learned_factors(self) -> dict[str, float]:
        """The mean of the forgetting factors that training moves; of several also the least and the greatest."""
        factors = [cell.learned_factors() for cell in self.cells]  # type: ignore[operator]
        if not (learned := [tensor.flatten() for tensor in factors if tensor is not None]):
            return {}
        every = torch.cat(learned).detach()
        spread = {"alpha_min": float(every.min()), "alpha_max": float(every.max())} if len(every) > 1 else {}
        return {"alpha": float(every.mean()), **spread}

    def saturation(self, features: Tensor) -> float:
        """The share of the last layer's outputs (T, B, H) whose gradient is nearly lost."""
        share: float = self.cells[-1].saturation(features)  # type: ignore[operator]
        return share
