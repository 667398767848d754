"""Deep recurrent networks: deep transition, deep output, and a stack of states.

Source of all: Pascanu, Gulcehre, Cho & Bengio, "How to construct deep recurrent neural networks" (2014). In
its view (section 4) a recurrent network is made of two operators, each a multilayer perceptron:
h_t = x_t (+) h_{t-1} (plus) and y_t = |> h_t (predict).
"""

from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell, drawn_with, find_activation, saturation
from hornn.cells.elman import RnnState
from hornn.cells.mlp import Layer, Mlp, Units, build_units, require_p
from hornn.checks import (
    is_number,
    require_choice,
    require_depth,
    require_dropout,
    require_positive,
    require_range,
    require_truth,
    require_whole,
)

# Which layers of the transition the input feeds, as a slice of the list of its layers.
INPUT_LAYERS = {"all": slice(None), "first": slice(0, 1), "last": slice(-1, None)}


class DeepRnn(Cell):
    """Deep transition, deep output: DT-, DT(S)-, DO-, DOT- and DOT(S)-RNN are its depths and shortcuts.

    plus, the transition, has L = `transition_depth` layers:

        z_0 = h_{t-1}
        z_l = f_l(W_l z_{l-1} + U_l x_t [+ S_l h_{t-1}] [+ b_l]),   l = 1..L
        h_t = z_L

    predict, the output, has M = `output_depth` layers; the last is the softmax outside this cell:

        o_0 = h_t
        o_m = g_m(V_m o_{m-1} [+ c_m]),   m = 1..M-1
        y_t = o_{M-1}

    Depth 1 of both is the RNN; depth 2 has one intermediate layer. h_t has H = `hidden_size` units, the
    intermediate layers `transition_size` and `output_size` (None: H). `shortcuts` adds full matrices S_l
    from h_{t-1} to every layer but the first. `input_layers` are the layers that x_t feeds: all, first or last.
    The output is not recurrent: it runs once for all time.

    f_1..f_{L-1} are `transition_activation`, f_L is `state_activation`, g_m `output_activation`: sigmoid,
    tanh, relu, or, of `pieces` linear pieces, maxout or lp, of order `p`, which every unit learns if
    `learn_p` (see `hornn.cells.mlp`). `transition_dropout` and `output_dropout` drop units of the
    intermediate layers, never of h_t. Of the intermediate output layers `output_std` is the standard deviation of the
    first V_m (None: as all weights), `output_bias` the first value of every c_m (None: 0 with `bias`, else no c). The
    attribute `activation` names the function of y_t.

    Shapes, where N_l is the units of layer l times their pieces: x_t (B, I), h_t (B, H), W_in (sum of N_l,
    I) stacks the U_l of the layers that x_t feeds. plus.{l-1} has W (N_l, units below), S (N_l, H),
    b (N_l); predict.{m-1} has V_m as W and c_m as b. With `embedded_input` there is no W_in: x_t is
    already [U_1 x_t, U_2 x_t, ...], a row of an embedding table of that width, and `input_size` = sum of
    N_l. This is the paper's network on one-hot words and gives its weight counts (table 1).

    Source: section 3.3.1 for plus, 3.2.3 for its shortcuts, 3.3.2 for predict, 5.2 for the start of the output, 5.3.1
    for lp, maxout and dropout. Departures: the c_m of `output_bias` are learned; the paper fixes the biases of a ReLU
    output layer. That x_t feeds both layers of the paper's transition and that S is a full matrix follows from its
    weight counts and the authors' released code; the counts have no biases, so b is off unless `bias`. Where the paper
    drops units is not said; that p is fixed by default is our choice.
    Raises ValueError for a depth or size < 1, fewer than 2 pieces, a p < 1, a dropout outside [0, 1), an
    unknown activation or choice of layers, an option of intermediate layers or lp units where there are none, and
    an `input_size` that is not the width of the embedded input.
    """

    recurrent = ("plus",)  # section 5.2 initialises all weights between hidden layers alike

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        transition_depth: int = 2,
        transition_size: int | None = None,
        shortcuts: bool = False,
        output_depth: int = 1,
        output_size: int | None = None,
        input_layers: str = "all",
        embedded_input: bool = False,
        transition_activation: str = "sigmoid",
        state_activation: str = "sigmoid",
        output_activation: str = "sigmoid",
        pieces: int = 2,
        p: float = 2.0,
        learn_p: bool = False,
        transition_dropout: float = 0.0,
        output_dropout: float = 0.0,
        output_std: float | None = None,
        output_bias: float | None = None,
        bias: bool = False,
    ) -> None:
        require_depth(transition_depth=transition_depth, output_depth=output_depth)
        require_truth(shortcuts=shortcuts, embedded_input=embedded_input, learn_p=learn_p)
        require_dropout(transition_dropout=transition_dropout, output_dropout=output_dropout)
        require_whole(2, pieces=pieces)
        require_p(p, learn_p)
        require_choice("input_layers", input_layers, INPUT_LAYERS)
        if learn_p and "lp" not in (transition_activation, state_activation, output_activation):
            raise ValueError(
                "learn_p=true is about lp units, and there are none: set transition_activation, state_activation or "
                "output_activation to lp, or leave it out"
            )
        if transition_depth == 1:
            refuse_without_layers(
                "transition_depth",
                transition_size=transition_size,
                shortcuts=shortcuts or None,
                transition_dropout=transition_dropout or None,
            )
        if output_depth == 1:
            refuse_without_layers(
                "output_depth",
                output_size=output_size,
                output_dropout=output_dropout or None,
                output_std=output_std,
                output_bias=output_bias,
            )
        if output_std is not None:
            holds = is_number(output_std) and output_std >= 0
            require_range("output_std", output_std, "a standard deviation >= 0, or null", holds)
        if output_bias is not None:
            require_range("output_bias", output_bias, "a number, or null", is_number(output_bias))
        transition_size = hidden_size if transition_size is None else transition_size
        output_size = hidden_size if output_size is None else output_size
        super().__init__(input_size, hidden_size, output_size)
        require_positive(transition_size=transition_size, output_size=output_size)
        self.activation = state_activation if output_depth == 1 else output_activation
        self.output_dropout = output_dropout

        def units(part: str, activation: str, width: int) -> Units:
            return build_units(part, activation, width, pieces, p, learn_p)

        transition = [
            units("transition_activation", transition_activation, transition_size)
            for _ in range(transition_depth - 1)
        ]
        transition.append(units("state_activation", state_activation, hidden_size))
        output = [units("output_activation", output_activation, output_size) for _ in range(output_depth - 1)]
        self.plus = self.build_mlp(
            transition, shortcuts, [transition_dropout] * (transition_depth - 1) + [0.0], bias
        )
        with nullcontext() if output_std is None else drawn_with(output_std):
            self.predict = self.build_mlp(
                output, False, [output_dropout] * (output_depth - 1), bias or output_bias is not None
            )
        for layer in self.predict:
            if output_bias is not None:
                nn.init.constant_(layer.b, output_bias)  # type: ignore[arg-type]
        self.fed = INPUT_LAYERS[input_layers]
        self.fed_sizes = [layer.pre_width for layer in transition][self.fed]
        self.W_in = input_weight(self, sum(self.fed_sizes), embedded_input)

    @classmethod
    def embedding_width(cls, hidden_size: int, **arguments: Any) -> int:
        if not arguments.get("embedded_input"):
            return hidden_size
        plain = cls(input_size=1, hidden_size=hidden_size, **{**arguments, "embedded_input": False})
        return sum(plain.fed_sizes)

    def build_mlp(self, units: list[Units], shortcuts: bool, dropout: list[float], bias: bool) -> Mlp:
        """A perceptron on top of a state, with these units in its layers."""
        mlp, below = Mlp(), self.hidden_size
        for level, (layer_units, rate) in enumerate(zip(units, dropout, strict=True)):
            rows = layer_units.pre_width
            S = self.weight(rows, self.hidden_size) if shortcuts and level > 0 else None
            mlp.append(Layer(layer_units, self.weight(rows, below), S, self.bias(bias, rows), rate))
            below = layer_units.width
        return mlp

    def initial_state(self, batch_size: int) -> RnnState:
        return RnnState(self.zeros(batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        """(T, B, I) -> (T, B, G): [U_1 x_t, U_2 x_t, ...] of the layers that the input feeds."""
        return x if self.W_in is None else F.linear(x, self.W_in)

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        sides: list[Tensor | None] = [None] * len(self.plus)
        sides[self.fed] = u_t.split(self.fed_sizes, dim=-1)
        h_t = self.plus(state.h, sides)
        return h_t, RnnState(h_t)

    def paths(self, u_t: Tensor, state: RnnState) -> dict[str, Tensor]:
        """What h_{t-1} adds to each layer of the transition that it feeds."""
        fed = {"W_1 h_{t-1}": self.plus[0].W}
        fed |= {f"S_{n} h_{{t-1}}": layer.S for n, layer in enumerate(self.plus, 1) if layer.S is not None}
        return {name: F.linear(state.h, matrix) for name, matrix in fed.items()}  # type: ignore[arg-type]

    def project_output(self, y: Tensor) -> Tensor:
        """(T, B, H) -> (T, B, output_size): the predict operator up to the softmax."""
        features: Tensor = self.predict(y)
        return features

    def saturation(self, y: Tensor) -> float:
        """The share among the units that dropout keeps; an estimate for ReLUs, whose zeros look like dropped units."""
        rate = self.output_dropout if self.training else 0.0
        if not rate or not y.any():
            return super().saturation(y)
        kept = y[y != 0] * (1 - rate)
        if self.activation == "relu":
            return max(0.0, 1 - len(kept) / ((1 - rate) * y.numel()))
        return saturation(kept, self.activation)


class StackedRnnState(NamedTuple):
    h: Tensor  # (L, B, H), the lowest level first


class StackedRnn(Cell):
    """Stacked RNN: L = `depth` levels of states, each fed by its own past and by the level below.

        h^1_t = f(W^1 h^1_{t-1} + U^1 x_t [+ b^1])
        h^l_t = f(W^l h^l_{t-1} + U^l h^{l-1}_t [+ X^l x_t] [+ b^l]),   l = 2..L
        y_t = h^L_t   [or h^1_t, ..., h^L_t]

    `input_shortcuts` add the X^l, `output_shortcuts` have all levels in y_t. f is `activation`: sigmoid,
    tanh or relu. Depth 1 is the RNN, and the parameters of a stack have their names in a deeper one too.

    x_t (B, I), h^l_t (B, H). W_in stacks the matrices of x_t: U^1 (H, I), with `input_shortcuts` U^1,
    X^2, ..., X^L (L H, I). W_h.{l-1} is W^l (H, H), U.{l-2} is U^l (H, H), b (L, H). With `embedded_input`
    there is no W_in: x_t is already [U^1 x_t, X^2 x_t, ...], a row of an embedding table of that width, and
    `input_size` = H or L H. This is the paper's network on one-hot words and gives its weight counts
    (table 1).

    Source: section 3.3.3; it quotes the shortcuts from Graves 2013 (input) and Hermans & Schrauwen 2013 (output), and
    its experiments have neither. Departures: none. The counts have no biases, so b is off unless `bias`.
    Raises ValueError for a depth or size < 1, an unknown activation, and an `input_size` that is not the
    width of the embedded input.
    """

    recurrent = ("W_h", "U")  # section 5.2 initialises all weights between hidden layers alike

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        depth: int = 2,
        input_shortcuts: bool = False,
        output_shortcuts: bool = False,
        embedded_input: bool = False,
        activation: str = "sigmoid",
        bias: bool = False,
    ) -> None:
        require_depth(depth=depth)
        require_truth(
            input_shortcuts=input_shortcuts, output_shortcuts=output_shortcuts, embedded_input=embedded_input
        )
        super().__init__(input_size, hidden_size)
        self.output_size = depth * hidden_size if output_shortcuts else hidden_size
        self.depth = depth
        self.output_shortcuts = output_shortcuts
        self.activation = activation
        self.f = find_activation(activation)
        self.fed_levels = depth if input_shortcuts else 1
        self.W_in = input_weight(self, self.fed_levels * hidden_size, embedded_input)
        self.W_h = nn.ParameterList(self.weight(hidden_size, hidden_size) for _ in range(depth))
        self.U = nn.ParameterList(self.weight(hidden_size, hidden_size) for _ in range(depth - 1))
        self.b = self.bias(bias, depth, hidden_size)

    @classmethod
    def embedding_width(cls, hidden_size: int, **arguments: Any) -> int:
        levels = arguments.get("depth", 2) if arguments.get("input_shortcuts") else 1
        return levels * hidden_size if arguments.get("embedded_input") else hidden_size

    def initial_state(self, batch_size: int) -> StackedRnnState:
        return StackedRnnState(self.zeros(self.depth, batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        """(T, B, I) -> (T, B, G): the input's part of the levels that it feeds."""
        return x if self.W_in is None else F.linear(x, self.W_in)

    def step(self, u_t: Tensor, state: StackedRnnState) -> tuple[Tensor, StackedRnnState]:
        u = u_t.split(self.hidden_size, dim=-1)
        levels: list[Tensor] = []
        for level, (W, h) in enumerate(zip(self.W_h, state.h, strict=True)):
            a = F.linear(h, W, None if self.b is None else self.b[level])
            if level < len(u):
                a = a + u[level]
            if level > 0:
                a = a + F.linear(levels[-1], self.U[level - 1])
            levels.append(self.f(a))
        y_t = torch.cat(levels, dim=-1) if self.output_shortcuts else levels[-1]
        return y_t, StackedRnnState(torch.stack(levels))


def input_weight(cell: Cell, width: int, embedded: bool) -> nn.Parameter | None:
    """The (width, I) matrix of the input, or None where the input is embedded and has that width already."""
    if not embedded:
        return cell.weight(width, cell.input_size)
    if cell.input_size != width:
        raise ValueError(
            f"embedded_input=true needs input_size={width}, the sum of the layers that the input feeds, "
            f"got {cell.input_size}: set network.embedding_size={width}, or embedded_input=false"
        )
    return None


def refuse_without_layers(depth: str, **options: object) -> None:
    """Raise ValueError for the first of `options` that is not None: with depth 1 no layers have it."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name}={value} needs {depth} >= 2, got {depth}=1, which has no such layers")
