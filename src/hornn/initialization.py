"""How the matrices that act on a state may start: the sparse scheme of a paper."""

import torch
from torch import Tensor


@torch.no_grad()
def make_sparse(weight: Tensor, fan_in: int) -> None:
    """Give every unit `fan_in` incoming connections and the matrix (.., out, in) unit largest singular value.

    The places are drawn without replacement for each row, the values from U(-1, 1), each row is scaled to
    norm 1 and then the whole to largest singular value 1.

    Source: Pascanu et al. 2014, section 5 (20 non-zero incoming connections, unit largest singular value);
    scaling the rows first is the released code's. Departure: that code fills 20 places for each *input* unit, we follow
    the paper's words. Raises ValueError for a fan_in above the width.
    """
    out_size, in_size = weight.shape[-2:]
    if fan_in > in_size:
        raise ValueError(
            f"network.recurrent_fan_in must be at most the state's width {in_size}, got {fan_in}"
        )
    if weight.is_meta:  # a shape alone; to draw it loads torch's compiler, a second
        return
    for matrix in weight.view(-1, out_size, in_size):
        places = torch.rand(out_size, in_size).argsort(-1)[:, :fan_in]
        matrix.zero_().scatter_(-1, places, torch.rand(out_size, fan_in) * 2 - 1)
        matrix.div_(torch.linalg.vector_norm(matrix, dim=-1, keepdim=True))
        matrix.div_(torch.linalg.matrix_norm(matrix, ord=2))
