// The scan of the GRU whose reset gate follows the product.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "products.h"
#include "vectors.h"

namespace {

// Where the sums of `count` panels of gates lie in a tile, which are multiplied as many at a time as there are kernels
// for.
struct Gates {
  std::array<int64_t, 8> first, width;

  Gates(int64_t count, const Block& block) {
    for (int64_t q = 0, rows = block.rows, wide = block.kernels().widest; q < count; q += wide) {
      while (wide > count - q) wide /= 2;
      for (int64_t c = 0; c < wide; ++c) first[q + c] = q * rows * W + c * W, width[q + c] = wide;
    }
  }

  int64_t at(int64_t q, int64_t row) const { return first[q] + row * width[q] * W; }
};

// Of a GRU with r, z, n stacked in u (T, B, 3 H) and weight (3 H, H), and a bias (H) of the product of n: the outputs
// (T, B, H), and where `keep` r, z, n and the product of n (T, B, 4, H) that the backward pass needs.
std::tuple<Tensor, Tensor> gru(const Tensor& u, const Tensor& h_0, const Tensor& weight,
                               const std::optional<Tensor>& bias, bool keep, bool in_bf16, int64_t threads) {
  const Sizes z = Sizes::of_gates(u.size(0), h_0, 3);
  const std::vector<Block> blocks = blocks_of(z.B, in_bf16);

  Tensor y = at::empty({z.T, z.B, z.H}, at::kFloat);
  Tensor gates = at::empty({keep ? z.T : 0, z.B, 4, z.H}, at::kFloat);
  const int64_t matrix = packed_size(z.H, in_bf16), panel = 3 * matrix;
  Tensor packed = buffer(z.panels * panel);
  Tensor ring = buffer(2 * z.B * z.H);  // the outputs of this step and of the last one, packed

  const float* u_ = u.const_data_ptr<float>();
  const float* h_0_ = h_0.const_data_ptr<float>();
  const float* bias_ = bias ? bias->const_data_ptr<float>() : nullptr;
  const float* packed_ = packed.const_data_ptr<float>();
  float* y_ = y.mutable_data_ptr<float>();
  float* gates_ = gates.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  const auto slot = [&](int64_t t) { return ring_ + (t + 2) % 2 * z.B * z.H; };

  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    pack_weights(weight.const_data_ptr<float>(), true, z.K, z.H, z.H, panel, in_bf16,
                 packed.mutable_data_ptr<float>());
    pack_left(h_0_, blocks, z.H, slot(-1));

    float sums[6 * MOST_ROWS * W], out[2 * MOST_ROWS * W];
    for (int64_t t = 0; t < z.T; ++t) {
      for_tiles(z, blocks, 2, team, me, [&](const Tile& tile) {
        const int rows = tile.block.rows;
        const Gates places(3 * tile.columns, tile.block);
        std::fill(sums, sums + 3 * tile.columns * rows * W, 0.0f);
        tile.each([&](int64_t, int64_t b, int64_t j, int64_t) {
          for (int64_t gate = 0; gate < 3; ++gate) __builtin_prefetch(u_ + (t * z.B + b) * z.G + gate * z.H + j);
        });
        for (int64_t q = 0; q < 3 * tile.columns; q += places.width[q])
          tile.block.kernels().product(places.width[q])(slot(t - 1) + tile.block.start * z.H,
                                                        packed_ + (tile.p * 3 + q) * matrix, matrix, z.H,
                                                        sums + places.at(q, 0));
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const int64_t q = (j / W - tile.p) * 3, row = b - tile.block.start, at = (t * z.B + b) * z.H + j;
          const auto given = [&](int64_t gate) { return load(u_ + (t * z.B + b) * z.G + gate * z.H + j, lanes); };
          const auto product = [&](int64_t gate) { return load(sums + places.at(q + gate, row)); };
          const Vec v = bias_ ? product(2) + load(bias_ + j, lanes) : product(2);
          const Vec reset = sigmoid(given(0) + product(0)), update = sigmoid(given(1) + product(1));
          const Vec n = tanh(given(2) + reset * v);
          const Vec h = n + update * (load(t ? y_ + at - z.B * z.H : h_0_ + at, lanes) - n);
          store(y_ + at, h, lanes);
          store(out + i, h);
          if (keep) {
            const Vec kept[] = {reset, update, n, v};
            for (int64_t gate = 0; gate < 4; ++gate)
              store(gates_ + ((t * z.B + b) * 4 + gate) * z.H + j, kept[gate], lanes);
          }
        });
        tile.pack(out, slot(t));
      });
      barrier.wait(team);
    }
  }
  return {y, gates};
}

// All steps from the last to the first: the gradients of u, of the product of n (T, B, H) and of the first output.
std::tuple<Tensor, Tensor, Tensor> gru_backward(const Tensor& grad_y, const Tensor& grad_last, const Tensor& y,
                                                const Tensor& h_0, const Tensor& weight, const Tensor& gates,
                                                std::optional<double> bound, bool in_bf16, int64_t threads) {
  const Sizes z = Sizes::of_gates(grad_y.size(0), h_0, 3);
  const std::vector<Block> blocks = blocks_of(z.B, in_bf16);
  const int64_t wide = blocks.back().kernels().widest;

  Tensor grad_u = at::empty({z.T, z.B, z.G}, at::kFloat);
  Tensor grad_product = at::empty({z.T, z.B, z.H}, at::kFloat);
  Tensor carried = grad_last.clone();  // the gradient that passes by the step after; at last the first output's
  const int64_t matrix = packed_size(z.H, in_bf16), panel = 3 * matrix;
  Tensor packed = buffer(z.panels * panel);
  Tensor ring = buffer(2 * 3 * z.B * z.H);  // the gradients of the three products, of two steps, packed

  const float* grad_y_ = grad_y.const_data_ptr<float>();
  const float* y_ = y.const_data_ptr<float>();
  const float* h_0_ = h_0.const_data_ptr<float>();
  const float* gates_ = gates.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  float* grad_u_ = grad_u.mutable_data_ptr<float>();
  float* grad_product_ = grad_product.mutable_data_ptr<float>();
  float* carried_ = carried.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  const auto slot = [&](int64_t t, int64_t gate) { return ring_ + (t % 2 * 3 + gate) * z.B * z.H; };

  Bounded bounded_h(bound, z);
  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    pack_weights(weight.const_data_ptr<float>(), false, z.K, z.H, z.H, panel, in_bf16,
                 packed.mutable_data_ptr<float>());

    float sum[TILE], parts[3][TILE];
    // sum = what flows back into the state from step t
    const auto flow_back = [&](const Tile& tile, int64_t t) {
      tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
        store(sum + i, load(carried_ + b * z.H + j, lanes));
      });
      for (int64_t gate = 0; t < z.T && gate < 3; ++gate)
        tile.block.kernels().product(tile.columns)(slot(t, gate) + tile.block.start * z.H,
                                                   packed_ + tile.p * panel + gate * matrix, panel, z.H, sum);
    };
    for (int64_t s = z.T - 1; s >= -1; --s) {
      const bool bounded = bound && s < z.T - 1;
      if (bounded) {
        for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
          flow_back(tile, s + 1);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) { bounded_h.put(b, j, load(sum + i), lanes); });
        });
        barrier.wait(team);
      }
      const float factor = bounded ? bounded_h.factor() : 1.0f;
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        if (bounded)
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            store(sum + i, bounded_h.take(b, j, lanes, factor));
          });
        else
          flow_back(tile, s + 1);
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          if (s < 0) {
            store(carried_ + b * z.H + j, load(sum + i), lanes);
            return;
          }
          const int64_t at = (s * z.B + b) * z.H + j;
          const auto gate = [&](int64_t n) { return load(gates_ + ((s * z.B + b) * 4 + n) * z.H + j, lanes); };
          const Vec reset = gate(0), update = gate(1), n = gate(2), v = gate(3);
          const Vec dh = load(sum + i) + load(grad_y_ + at, lanes);
          const Vec before = load(s ? y_ + at - z.B * z.H : h_0_ + at, lanes);
          const Vec dn = dh * (1.0f - update) * (1.0f - n * n);
          const Vec dv = dn * reset;
          const Vec arguments[] = {dn * v * (reset * (1.0f - reset)), dh * (before - n) * (update * (1.0f - update)),
                                   dn};
          for (int64_t k = 0; k < 3; ++k) {
            store(grad_u_ + (s * z.B + b) * z.G + k * z.H + j, arguments[k], lanes);
            store(parts[k] + i, k < 2 ? arguments[k] : dv);
          }
          store(grad_product_ + at, dv, lanes);
          store(carried_ + b * z.H + j, dh * update, lanes);
        });
        for (int64_t k = 0; s >= 0 && k < 3; ++k) tile.pack(parts[k], slot(s, k));
      });
      barrier.wait(team);
    }
  }
  return {grad_u, grad_product, carried};
}

}  // namespace
