// The gradients of the matrices of a scan: one product over all steps and columns each.
#pragma once

#include <omp.h>

#include <algorithm>
#include <vector>

#include "products.h"
#include "reduced.h"
#include "vectors.h"

namespace {

// out (H, H) = factor times the sum over t and b of g_tb h_{t-lag,b}^T, for g (T, B, H), whose last neighbours lie side
// by side.
struct WeightGradient {
  int64_t lag;
  Tensor g, out;
  float factor;
};

// All of them, in fp32: the states are packed once, and g once where it serves several lags in turn.
void weight_gradients_in_fp32(const std::vector<WeightGradient>& gradients, const Tensor& states, int64_t K, int team) {
  const int64_t B = states.size(1), H = states.size(2), past = K * B, all = states.size(0) * B, rows = all - past;
  const int64_t panels = panels_of(H), panel = all * W;
  const std::vector<Block> blocks = blocks_of(H);
  Tensor packed = buffer(panels * panel);
  const float* states_ = states.const_data_ptr<float>();
  float* packed_ = packed.mutable_data_ptr<float>();
#pragma omp parallel num_threads(team)
  {
#pragma omp for
    for (int64_t p = 0; p < panels; ++p) pack_panel(states_ + p * W, H, all, H - p * W, false, packed_ + p * panel);
    std::vector<float> left(rows * MAX_ROWS);
    float sum[ACCUMULATORS * W];
#pragma omp for
    for (const Block& block : blocks) {
      const float* packed_from = nullptr;
      for (const WeightGradient& gradient : gradients) {
        const float* g = gradient.g.const_data_ptr<float>();
        const float* taken = packed_ + (past - gradient.lag * B) * W;
        float* out = gradient.out.mutable_data_ptr<float>();
        if (g != packed_from) {
          packed_from = g;
          block.kernels().pack_columns(g + block.start, gradient.g.stride(1), rows, left.data());
        }
        int64_t columns = block.kernels().widest;
        for (int64_t p = 0; p < panels; p += columns) {
          while (columns > panels - p) columns /= 2;
          std::fill(sum, sum + ACCUMULATORS * W, 0.0f);
          block.kernels().product(columns)(left.data(), taken + p * panel, panel, rows, sum);
          for (int r = 0; r < block.rows; ++r)
            for (int64_t c = 0; c < columns; ++c)
              store(out + (block.start + r) * H + (p + c) * W, gradient.factor * load(sum + (r * columns + c) * W),
                    H - (p + c) * W);
        }
      }
    }
  }
}

// All of them, for states (K + T, B, H), of which the first K are the history.
void weight_gradients(const std::vector<WeightGradient>& gradients, const Tensor& states, int64_t K, bool in_bf16,
                      int team) {
  if (!in_bf16) return weight_gradients_in_fp32(gradients, states, K, team);
  for (const WeightGradient& gradient : gradients) {
    const Tensor taken = states.narrow(0, K - gradient.lag, states.size(0) - K).flatten(0, 1);
    reduced_product(gradient.g.flatten(0, 1).t(), taken, gradient.out, true, gradient.factor, false, team);
  }
}

}  // namespace
