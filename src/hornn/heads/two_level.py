"""The softmax of two levels."""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell
from hornn.heads.base import Head
from hornn.kernels.cross_entropy import differentiate, differentiate_natively, scaled

GROUP = 256  # words of clusters that share a product in training


class TwoLevelSoftmaxHead(Head):
    """Two-level softmax: first the cluster of the word, then the word within its cluster.

        P(w | h_t) = softmax(W_class h_t [+ b_class])_c(w) * softmax(W_word^c(w) h_t [+ b_word^c(w)])_w

    c(w) is the cluster of w and W_word^c the rows of W_word (V, H) that belong to cluster c; W_class (C, H),
    b_class (C), b_word (V). The words, most frequent first, fill a cluster until it holds at least
    1/`num_clusters` of the training tokens, then the next one. These are exact probabilities that add up
    to 1, so a perplexity is comparable with the full softmax's; a target costs about
    C + V / C rows of weights instead of V. A word that alone fills its cluster needs no second level.

    `num_clusters` is K, by default floor(sqrt(V)); 100 on Penn Treebank for the paper's table 2. Frequent
    words hold more than 1/K, so there are C <= K clusters.

    Source: Mikolov et al., "Learning longer memory in recurrent neural networks" (2015), section 2.1, and its
    released code for the rule that fills the clusters. Departures: weights start at random and biases, if
    any, are trained, where the code starts both at 0 and keeps the biases there.

    `precision` is always fp32: the products are too small for bf16 to pay.
    Raises ValueError for a number of clusters outside 1..V, or for counts that rise with the id.
    """

    precisions = ("auto", "fp32")
    waits = True
    cluster_of: Tensor  # (V), which cluster each word is in
    first_of: Tensor  # (C), the first word of each cluster

    def __init__(
        self, input_size: int, counts: Sequence[int], num_clusters: int | None = None, bias: bool = False
    ) -> None:
        super().__init__()
        self.chance_nll = math.log(len(counts))
        sizes = fill_clusters(counts, math.isqrt(len(counts)) if num_clusters is None else num_clusters)
        self.sizes = sizes
        self.W_class = Cell.weight(len(sizes), input_size)
        self.W_word = Cell.weight(len(counts), input_size)
        self.b_class = nn.Parameter(torch.zeros(len(sizes))) if bias else None
        self.b_word = nn.Parameter(torch.zeros(len(counts))) if bias else None
        cluster_of = torch.tensor([cluster for cluster, size in enumerate(sizes) for _ in range(size)])
        first_of = torch.tensor([0, *accumulate(sizes[:-1])])
        self.groups = group_clusters(sizes)
        self.register_buffer("cluster_of", cluster_of, persistent=False)
        self.register_buffer("first_of", first_of, persistent=False)

    def log_probs(self, features: Tensor) -> Tensor:
        log_class = F.linear(features, self.W_class, self.b_class).log_softmax(-1)
        logits = F.linear(features, self.W_word, self.b_word).split(self.sizes, -1)
        log_word = torch.cat([cluster.log_softmax(-1) for cluster in logits], -1)
        return log_class.index_select(-1, self.cluster_of) + log_word

    def sort(self, targets: Tensor) -> tuple[Tensor, Tensor, Tensor, list[int]]:
        """The order (N') of the targets that are not negative which brings the targets of a cluster together.

        With it, in that order, the targets (N') and their clusters (N'), and how many fall into each cluster.
        """
        words, order = targets.flatten().sort()  # as the ids of a cluster are consecutive
        ignored = int((words < 0).sum())
        words, order = words[ignored:], order[ignored:]
        clusters = self.cluster_of[words]
        rows = clusters.bincount(minlength=len(self.sizes)).tolist()
        return order, words, clusters, rows

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        order, words, clusters, rows = self.sort(targets)
        h = features.flatten(0, 1).index_select(0, order)
        in_class = F.cross_entropy(F.linear(h, self.W_class, self.b_class), clusters, reduction="none")
        places = (words - self.first_of[clusters]).split(rows)
        weights = self.W_word.split(self.sizes)
        biases = [None] * len(rows) if self.b_word is None else self.b_word.split(self.sizes)
        in_cluster = [
            F.cross_entropy(F.linear(h_c, W, b), place, reduction="none")
            if len(place) and len(W) > 1
            else h_c.new_zeros(len(place))
            for h_c, place, W, b in zip(h.split(rows), places, weights, biases, strict=True)
        ]
        nll = in_class + torch.cat(in_cluster)
        return nll.new_zeros(targets.numel()).index_copy(0, order, nll).view(targets.shape)

    def loss(self, features: Tensor, targets: Tensor, scale: float = 1.0) -> Tensor:
        """`scale` times the sum of `nll`, its gradients found group of clusters by group."""
        loss: Tensor = TwoLevelCrossEntropy.apply(
            features.flatten(0, 1), self.W_class, self.b_class, self.W_word, self.b_word, targets, scale, self
        )
        return loss


class TwoLevelCrossEntropy(torch.autograd.Function):
    """The loss of a `TwoLevelSoftmaxHead`; as in `LinearCrossEntropy` its gradients are found in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        W_class: Tensor,
        b_class: Tensor | None,
        W_word: Tensor,
        b_word: Tensor | None,
        targets: Tensor,
        scale: float,
        head: TwoLevelSoftmaxHead,
    ) -> Tensor:
        """h (N, H), the head's weights, targets (T, B) with negative ids ignored -> scalar, nats times scale."""
        order, targets, clusters, rows = head.sort(targets)
        sorted_h = h.index_select(0, order)
        gradients = differentiate_natively if head.native else differentiate
        total, grad_sorted, *grads_class = gradients(sorted_h, W_class, b_class, clusters, scale)
        grad_word = torch.zeros_like(W_word)
        grad_bias = None if b_word is None else torch.zeros_like(b_word)
        end = 0
        for group, words in head.groups:
            some = slice(end, end := end + sum(rows[group]))
            if some.start < end:
                outside = None
                if group.stop > group.start + 1:
                    outside = head.cluster_of[words] != clusters[some].unsqueeze(-1)
                within, grad_h, grad_word[words], grad = gradients(
                    sorted_h[some],
                    W_word[words],
                    None if b_word is None else b_word[words],
                    targets[some] - words.start,
                    scale,
                    outside=outside,
                )
                grad_sorted[some] += grad_h
                if grad_bias is not None and grad is not None:
                    grad_bias[words] = grad
                total += within
        grad_h = torch.zeros_like(h).index_copy_(0, order, grad_sorted)
        ctx.save_for_backward(grad_h, *grads_class, grad_word, grad_bias)
        return (total * scale).to(torch.promote_types(h.dtype, torch.float32))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        return *scaled(ctx.saved_tensors, grad_output), None, None, None


def fill_clusters(counts: Sequence[int], num_clusters: int) -> list[int]:
    """Sizes of the clusters of words 0, 1, ...: each is full at 1/`num_clusters` of all occurrences."""
    if type(num_clusters) is not int or not 1 <= num_clusters <= len(counts):
        raise ValueError(
            f"head.num_clusters must be null or a whole number from 1 to {len(counts)}, the size of the "
            f"vocabulary, got {num_clusters!r}"
        )
    if any(left < right for left, right in pairwise(counts)):
        raise ValueError(
            "head=two_level needs counts that fall with the id, as a vocabulary's do, and these rise: take head=softmax"
        )
    total, sizes, mass = sum(counts), [0], 0
    for count in counts:
        if mass * num_clusters >= total and sizes[-1] and len(sizes) < num_clusters:
            sizes.append(0)
            mass = 0
        sizes[-1] += 1
        mass += count
    return sizes


def group_clusters(sizes: Sequence[int]) -> list[tuple[slice, slice]]:
    """Clusters whose words one product takes: neighbours, of at most `GROUP` words unless one alone has more.

    Each group as the slice of its clusters and the slice of its words.
    """
    groups: list[tuple[slice, slice]] = []
    for cluster, (first, size) in enumerate(zip(accumulate(sizes, initial=0), sizes, strict=False)):
        if groups and first + size - groups[-1][1].start <= GROUP:
            clusters, words = groups.pop()
        else:
            clusters, words = slice(cluster, cluster), slice(first, first)
        groups.append((slice(clusters.start, cluster + 1), slice(words.start, first + size)))
    return groups
