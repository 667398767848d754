// Cross entropy of a linear layer and a softmax, and its gradients, by products in 16 bits.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <optional>
#include <tuple>

#include "cross_entropy.h"
#include "reduced.h"

namespace {

// For features h (N, H) and weights (V, H): each row's negative log-likelihood, the gradients of h and of the bias; the
// gradient of the weights is written to grad_weight. `tiles` are room for the logits, tile k (N, words) for the next
// words of V. Their gradient is (softmax - one-hot) times `raised`, the other gradients times `lowered`, too.
//
// grad_weight may share memory with the tiles where the rows of a tile's gradient lie over earlier tiles alone: these are
// used up when the rows are written.
std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy(const Tensor& h, const Tensor& weight,
                                                        const std::optional<Tensor>& bias, const Tensor& targets,
                                                        at::TensorList tiles, const Tensor& grad_weight, bool in_bf16,
                                                        double raised, double lowered, int64_t threads) {
  const auto each_tile = [&](const auto& work) {
    int64_t first = 0;
    for (const Tensor& tile : tiles) {
      work(tile, first, weight.narrow(0, first, tile.size(1)));
      first += tile.size(1);
    }
  };
  each_tile([&](const Tensor& tile, int64_t, const Tensor& rows) {
    reduced_product(h, rows.t(), tile, in_bf16, 1.0, false, threads);
  });
  const auto [nll, grad_bias] = cross_entropy(tiles, bias, targets, true, raised, threads);
  Tensor grad_h = at::empty(h.sizes(), at::kFloat);
  each_tile([&](const Tensor& tile, int64_t first, const Tensor& rows) {
    reduced_product(tile, rows, grad_h, in_bf16, lowered, first > 0, threads);
    reduced_product(tile.t(), h, grad_weight.narrow(0, first, tile.size(1)), in_bf16, lowered, false, threads);
  });
  return {nll, grad_h, grad_bias};
}

}  // namespace
