// The scan of the GRU whose reset gate precedes the product.
#pragma once

#include <omp.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "products.h"
#include "vectors.h"

namespace {

// Of a GRU with r, z, n stacked in u (T, B, 3 H) and weight (3 H, H): the outputs (T, B, H), and where `keep` r, z, n
// (T, B, 3, H) that the backward pass needs. A step has two parts: the product of n waits for all of r.
std::tuple<Tensor, Tensor> gru_early(const Tensor& u, const Tensor& h_0, const Tensor& weight, bool keep,
                                     bool in_bf16, int64_t threads) {
  const Sizes z = Sizes::of_gates(u.size(0), h_0, 3);
  const std::vector<Block> blocks = blocks_of(z.B, in_bf16);
  const int64_t wide = blocks.back().kernels().widest;

  Tensor y = at::empty({z.T, z.B, z.H}, at::kFloat);
  Tensor gates = at::empty({keep ? z.T : 1, z.B, 3, z.H}, at::kFloat);  // of one step after the other, or of all
  const int64_t matrix = packed_size(z.H, in_bf16), panel = 3 * matrix;
  Tensor packed = buffer(z.panels * panel);
  Tensor ring = buffer(2 * z.B * z.H);  // the outputs of this step and of the last one, packed
  Tensor reset = buffer(z.B * z.H);     // r * h of this step, packed

  const float* u_ = u.const_data_ptr<float>();
  const float* h_0_ = h_0.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  float* y_ = y.mutable_data_ptr<float>();
  float* gates_ = gates.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  float* reset_ = reset.mutable_data_ptr<float>();
  const auto slot = [&](int64_t t) { return ring_ + (t + 2) % 2 * z.B * z.H; };

  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    pack_weights(weight.const_data_ptr<float>(), true, z.K, z.H, z.H, panel, in_bf16, packed.mutable_data_ptr<float>());
    pack_left(h_0_, blocks, z.H, slot(-1));

    float sums[2][TILE];
    for (int64_t t = 0; t < z.T; ++t) {
      const auto given = [&](int64_t gate, int64_t b, int64_t j, int64_t lanes) {
        return load(u_ + (t * z.B + b) * z.G + gate * z.H + j, lanes);
      };
      const auto before = [&](int64_t b, int64_t j, int64_t lanes) {
        return load((t ? y_ + (t - 1) * z.B * z.H : h_0_) + b * z.H + j, lanes);
      };
      const auto place = [&](int64_t gate, int64_t b, int64_t j) {
        return gates_ + (((keep ? t : 0) * z.B + b) * 3 + gate) * z.H + j;
      };
      const auto multiply = [&](const Tile& tile, const float* left, int64_t gate) {
        std::fill_n(sums[gate % 2], tile.size(), 0.0f);
        tile.block.kernels().product(tile.columns)(left + tile.block.start * z.H,
                                                   packed_ + tile.p * panel + gate * matrix, panel, z.H,
                                                   sums[gate % 2]);
      };
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        for (int64_t gate = 0; gate < 2; ++gate) multiply(tile, slot(t - 1), gate);
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const Vec r = sigmoid(given(0, b, j, lanes) + load(sums[0] + i));
          store(place(0, b, j), r, lanes);
          store(place(1, b, j), sigmoid(given(1, b, j, lanes) + load(sums[1] + i)), lanes);
          store(sums[0] + i, r * before(b, j, lanes));
        });
        tile.pack(sums[0], reset_);
      });
      barrier.wait(team);
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        multiply(tile, reset_, 2);
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const Vec n = tanh(given(2, b, j, lanes) + load(sums[0] + i));
          const Vec h = n + load(place(1, b, j), lanes) * (before(b, j, lanes) - n);
          store(place(2, b, j), n, lanes);
          store(y_ + (t * z.B + b) * z.H + j, h, lanes);
          store(sums[0] + i, h);
        });
        tile.pack(sums[0], slot(t));
      });
      barrier.wait(team);
    }
  }
  return {y, gates};
}

// All steps from the last to the first: the gradients of u and of the first output.
std::tuple<Tensor, Tensor> gru_early_backward(const Tensor& grad_y, const Tensor& grad_last, const Tensor& y,
                                              const Tensor& h_0, const Tensor& weight, const Tensor& gates,
                                              std::optional<double> bound, bool in_bf16, int64_t threads) {
  const Sizes z = Sizes::of_gates(grad_y.size(0), h_0, 3);
  const std::vector<Block> blocks = blocks_of(z.B, in_bf16);
  const int64_t wide = blocks.back().kernels().widest;

  Tensor grad_u = at::empty({z.T, z.B, z.G}, at::kFloat);
  Tensor carried = grad_last.clone();  // the gradient that passes by the step after; at last the first output's
  const int64_t matrix = packed_size(z.H, in_bf16), panel = 3 * matrix;
  Tensor packed = buffer(z.panels * panel);
  Tensor ring = buffer(3 * z.B * z.H);  // the gradients of the arguments of r, z and n of a step, packed

  const float* grad_y_ = grad_y.const_data_ptr<float>();
  const float* y_ = y.const_data_ptr<float>();
  const float* h_0_ = h_0.const_data_ptr<float>();
  const float* gates_ = gates.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  float* grad_u_ = grad_u.mutable_data_ptr<float>();
  float* carried_ = carried.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();

  Bounded bounded_h(bound, z);
  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    pack_weights(weight.const_data_ptr<float>(), false, z.K, z.H, z.H, panel, in_bf16,
                 packed.mutable_data_ptr<float>());

    float sum[TILE], part[TILE];
    // sum += W^T of a gate times the gradient of its argument
    const auto multiply = [&](const Tile& tile, int64_t gate) {
      tile.block.kernels().product(tile.columns)(ring_ + (gate * z.B + tile.block.start) * z.H,
                                                 packed_ + tile.p * panel + gate * matrix, panel, z.H, sum);
    };
    // sum = what flows back into the state from the step after s
    const auto flow_back = [&](const Tile& tile, int64_t s) {
      tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
        store(sum + i, load(carried_ + b * z.H + j, lanes));
      });
      for (int64_t gate = 0; s < z.T - 1 && gate < 2; ++gate) multiply(tile, gate);
    };
    for (int64_t s = z.T - 1; s >= -1; --s) {
      const bool bounded = bound && s < z.T - 1;
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        flow_back(tile, s);
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          store(carried_ + b * z.H + j, load(sum + i), lanes);
          if (bounded) bounded_h.put(b, j, load(sum + i), lanes);
        });
      });
      barrier.wait(team);
      const float factor = bounded ? bounded_h.factor() : 1.0f;
      const auto gate = [&](int64_t n, int64_t b, int64_t j, int64_t lanes) {
        return load(gates_ + ((s * z.B + b) * 3 + n) * z.H + j, lanes);
      };
      const auto before = [&](int64_t b, int64_t j, int64_t lanes) {
        return load((s ? y_ + (s - 1) * z.B * z.H : h_0_) + b * z.H + j, lanes);
      };
      const auto place = [&](int64_t n, int64_t b, int64_t j) {
        return grad_u_ + (s * z.B + b) * z.G + n * z.H + j;
      };
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          float* passing = carried_ + b * z.H + j;
          const Vec flown = factor * load(passing, lanes);
          if (s < 0) {
            store(passing, flown, lanes);
            return;
          }
          const Vec dh = flown + load(grad_y_ + (s * z.B + b) * z.H + j, lanes);
          const Vec update = gate(1, b, j, lanes), n = gate(2, b, j, lanes);
          store(sum + i, dh * (before(b, j, lanes) - n) * (update * (1.0f - update)));
          store(part + i, dh * (1.0f - update) * (1.0f - n * n));
          store(place(1, b, j), load(sum + i), lanes);
          store(place(2, b, j), load(part + i), lanes);
          store(passing, dh * update, lanes);
        });
        if (s < 0) return;
        tile.pack(sum, ring_ + z.B * z.H);
        tile.pack(part, ring_ + 2 * z.B * z.H);
      });
      barrier.wait(team);
      if (s < 0) break;
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        std::fill_n(sum, tile.size(), 0.0f);
        multiply(tile, 2);  // the gradient of r * h
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          float* passing = carried_ + b * z.H + j;
          const Vec reset = gate(0, b, j, lanes), product = load(sum + i);
          const Vec dr = product * before(b, j, lanes) * (reset * (1.0f - reset));
          store(passing, load(passing, lanes) + product * reset, lanes);
          store(place(0, b, j), dr, lanes);
          store(sum + i, dr);
        });
        tile.pack(sum, ring_);
      });
      barrier.wait(team);
    }
  }
  return {grad_u, carried};
}

}  // namespace
