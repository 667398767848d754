"""The feed-forward network on spliced frames."""

from torch import Tensor, nn
from torch.nn import functional as F

from hornn.baselines.nnlm import Nnlm
from hornn.checks import require_depth, require_positive


class Dnn(Nnlm):
    """L hidden layers that see the last N frames and no more.

        z_t = [x_t, x_{t-1}, ..., x_{t-N+1}]
        h_1 = f(H z_t [+ d]),   h_l = f(W_l h_{l-1} [+ b_l])  for l = 2..L,   y_t = h_L

    x_t (B, I), h_l (B, H); N = `frames` and L = `num_hidden`, both >= 1; H (H, N I), W_l (H, H), d and b_l (H). Frames
    before the first are 0. Where the target of a step is the state of D steps before, the network sees N - 1 - D frames
    before that one and D after it. f is `activation`: sigmoid, tanh or relu.

    Source: the "7-layer sigmoid DNN" of the acoustic HORNN poster (Zhang & Woodland 2018), which gives neither its
    width nor its frames. Raises ValueError for a size < 1 or an unknown activation.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        frames: int = 11,
        num_hidden: int = 7,
        activation: str = "sigmoid",
        bias: bool = True,
    ) -> None:
        require_positive(frames=frames)
        require_depth(num_hidden=num_hidden)
        super().__init__(input_size, hidden_size, frames + 1, activation, bias=bias)
        self.W = nn.ParameterList(self.weight(hidden_size, hidden_size) for _ in range(num_hidden - 1))
        self.b = self.bias(bias and num_hidden > 1, num_hidden - 1, hidden_size)

    def project_output(self, y: Tensor) -> Tensor:
        """The windows (T, B, N I) -> (T, B, H): h_L."""
        h = super().project_output(y)
        for layer, W in enumerate(self.W):
            h = self.f(F.linear(h, W, None if self.b is None else self.b[layer]))
        return h
