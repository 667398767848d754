"""What an update on the CPU can do without."""

import torch
from torch.optim import Optimizer

from hornn.embedding import WordEmbedding
from hornn.heads.softmax import SoftmaxHead
from hornn.network import SequenceModel
from hornn.optim.descent import MomentumSGD


def spare_work(network: SequenceModel, optimizer: Optimizer, wrapped: bool = False) -> None:
    """Spare an update on the CPU what it can do without.

    The rows of a tied embedding are added to the gradient of the output layer. With MomentumSGD the gradient of another
    embedding has the rows of the chunk's words alone. With its native kernels the gradient of the output layer stays in
    bf16 where it was computed so, and the update writes the next bf16 copy of the weights.
    wrapped: in DistributedDataParallel, which wants gradients as large and as wide as the weights.
    """
    if isinstance(network.embedding, WordEmbedding):
        network.embedding.in_place = network.tied and not wrapped
    if not isinstance(optimizer, MomentumSGD):
        return
    optimizer.native = network.native
    if wrapped:
        return
    head = network.head
    network.spare_rows()
    if network.native and not network.tied and isinstance(head, SoftmaxHead) and head.precision == "bf16":
        head.W_out.grad_dtype = torch.bfloat16
        optimizer.bf16_copy = head.bf16_copy
