// The scan of the LSTM, plain and with a projected state.
#pragma once

#include <omp.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "products.h"
#include "vectors.h"

namespace {

// Of an LSTM with the gates i, f, g, o stacked in u (T, B, 4 H) and weight (4 H, R): the outputs (T, B, R) and the cells
// (T, B, H), and where `keep` the gates (T, B, 4, H) that the backward pass needs. The state that is fed back is the
// `projection` (R, H) of what the cells give, or that itself, R = H.
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& u, const Tensor& r_0, const Tensor& c_0, const Tensor& weight,
                                        const std::optional<Tensor>& projection, bool keep, bool in_bf16,
                                        int64_t threads) {
  const Sizes z = Sizes::of_gates(u.size(0), c_0, 4), fed(z.T, z.B, r_0.size(1));
  const int64_t R = fed.H;
  const std::vector<Block> blocks = blocks_of(z.B, in_bf16);
  const int64_t wide = blocks.back().kernels().widest;  // gates at a time

  Tensor y = at::empty({z.T, z.B, R}, at::kFloat);
  Tensor cells = at::empty({z.T, z.B, z.H}, at::kFloat);
  Tensor gates = at::empty({keep ? z.T : 0, z.B, 4, z.H}, at::kFloat);
  const int64_t panel = packed_size(R, in_bf16);
  Tensor packed = buffer(4 * z.panels * panel);
  Tensor ring = buffer(2 * z.B * R);  // the outputs of this step and of the last one, packed
  Tensor whole = buffer(projection ? z.B * z.H : 0);  // what is projected, packed
  std::optional<Matrix> narrow;
  if (projection) narrow.emplace(*projection, true, in_bf16);

  const float* u_ = u.const_data_ptr<float>();
  const float* c_0_ = c_0.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  float* y_ = y.mutable_data_ptr<float>();
  float* cells_ = cells.mutable_data_ptr<float>();
  float* gates_ = gates.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  float* whole_ = whole.mutable_data_ptr<float>();
  const auto slot = [&](int64_t t) { return ring_ + (t + 2) % 2 * z.B * R; };

  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    pack_weights(weight.const_data_ptr<float>(), true, 4, R, z.H, 4 * panel, in_bf16, packed.mutable_data_ptr<float>());
    if (narrow) narrow->pack();
    pack_left(r_0.const_data_ptr<float>(), blocks, R, slot(-1));

    float sums[4 * MOST_ROWS * W], out[MOST_ROWS * W], narrowed[TILE];
    for (int64_t t = 0; t < z.T; ++t) {
      for_tiles(z, blocks, 1, team, me, [&](const Tile& tile) {
        const int rows = tile.block.rows;
        std::fill(sums, sums + 4 * rows * W, 0.0f);
        for (int64_t gate = 0; gate < 4; gate += wide)
          tile.block.kernels().product(wide)(slot(t - 1) + tile.block.start * R, packed_ + (tile.p * 4 + gate) * panel,
                                             panel, R, sums + gate * rows * W);
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const int64_t row = i / W, at = (t * z.B + b) * z.H + j;
          const auto argument = [&](int64_t gate) {
            return load(sums + gate / wide * wide * rows * W + (row * wide + gate % wide) * W) +
                   load(u_ + (t * z.B + b) * z.G + gate * z.H + j, lanes);
          };
          const Vec in = sigmoid(argument(0)), forget = sigmoid(argument(1)), g = tanh(argument(2)),
                    o = sigmoid(argument(3));
          const Vec c = forget * load((t ? cells_ + at - z.B * z.H : c_0_ + at), lanes) + in * g;
          const Vec m = o * tanh(c);
          store(cells_ + at, c, lanes);
          if (!narrow) store(y_ + at, m, lanes);
          store(out + i, m);
          if (keep) {
            const Vec kept[] = {in, forget, g, o};
            for (int64_t gate = 0; gate < 4; ++gate)
              store(gates_ + ((t * z.B + b) * 4 + gate) * z.H + j, kept[gate], lanes);
          }
        });
        tile.pack(out, narrow ? whole_ : slot(t));
      });
      barrier.wait(team);
      if (!narrow) continue;
      for_tiles(fed, blocks, wide, team, me, [&](const Tile& tile) {
        std::fill_n(narrowed, tile.size(), 0.0f);
        narrow->multiply(tile, whole_, narrowed);
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          store(y_ + (t * z.B + b) * R + j, load(narrowed + i), lanes);
        });
        tile.pack(narrowed, slot(t));
      });
      barrier.wait(team);
    }
  }
  return {y, cells, gates};
}

// All steps from the last to the first: the gradients of u, of the first output and of the first cell, and where there
// is a projection the gradients of its products (T, B, R).
std::tuple<Tensor, Tensor, Tensor, Tensor> lstm_backward(const Tensor& grad_y, const Tensor& grad_r,
                                                         const Tensor& grad_c, const Tensor& c_0, const Tensor& weight,
                                                         const std::optional<Tensor>& projection, const Tensor& cells,
                                                         const Tensor& gates, std::optional<double> bound,
                                                         bool in_bf16, int64_t threads) {
  const Sizes z = Sizes::of_gates(grad_y.size(0), c_0, 4), fed(z.T, z.B, grad_r.size(1));
  const int64_t R = fed.H;
  const std::vector<Block> blocks = blocks_of(z.B, in_bf16);
  const int64_t wide = blocks.back().kernels().widest;

  Tensor grad_u = at::empty({z.T, z.B, z.G}, at::kFloat);
  Tensor grad_r_0 = at::empty({z.B, R}, at::kFloat);
  Tensor grad_product = at::empty({projection ? z.T : 0, z.B, R}, at::kFloat);
  Tensor carried = grad_c.clone();  // the gradient of the cell that flows back from the step after
  const int64_t matrix = packed_size(z.H, in_bf16), panel = 4 * matrix;
  Tensor packed = buffer(fed.panels * panel);
  Tensor ring = buffer(2 * 4 * z.B * z.H);  // the gradients of the gates' arguments, of two steps, packed
  Tensor narrow = buffer(projection ? z.B * R : 0);  // the gradient of this step's output, packed
  std::optional<Matrix> widen;
  if (projection) widen.emplace(*projection, false, in_bf16);

  const float* grad_y_ = grad_y.const_data_ptr<float>();
  const float* grad_r_ = grad_r.const_data_ptr<float>();
  const float* c_0_ = c_0.const_data_ptr<float>();
  const float* cells_ = cells.const_data_ptr<float>();
  const float* gates_ = gates.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  float* grad_u_ = grad_u.mutable_data_ptr<float>();
  float* grad_r_0_ = grad_r_0.mutable_data_ptr<float>();
  float* grad_product_ = grad_product.mutable_data_ptr<float>();
  float* carried_ = carried.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  float* narrow_ = narrow.mutable_data_ptr<float>();
  const auto slot = [&](int64_t t, int64_t gate) { return ring_ + (t % 2 * 4 + gate) * z.B * z.H; };

  Bounded bounded_r(bound, fed);
  Bounded bounded_c[] = {{bound, z}, {bound, z}};  // taken at even and at odd steps
  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    pack_weights(weight.const_data_ptr<float>(), false, 4, z.H, R, panel, in_bf16, packed.mutable_data_ptr<float>());
    if (widen) widen->pack();

    float sum[TILE], parts[4][TILE];
    // sum += what flows back into the output from the gates of step t
    const auto multiply = [&](const Tile& tile, int64_t t) {
      for (int64_t gate = 0; gate < 4; ++gate)
        tile.block.kernels().product(tile.columns)(slot(t, gate) + tile.block.start * z.H,
                                                   packed_ + tile.p * panel + gate * matrix, panel, z.H, sum);
    };
    for (int64_t s = z.T - 1; s >= -1; --s) {
      const bool flows = s < z.T - 1, bounded = bound && flows;
      if (bounded) {
        for_tiles(fed, blocks, wide, team, me, [&](const Tile& tile) {
          std::fill_n(sum, tile.size(), 0.0f);
          multiply(tile, s + 1);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) { bounded_r.put(b, j, load(sum + i), lanes); });
        });
        barrier.wait(team);
      }
      const Bounded& bounded_now = bounded_c[s & 1];
      const float factor_r = bounded ? bounded_r.factor() : 1.0f, factor_c = bounded ? bounded_now.factor() : 1.0f;
      // sum = the gradient of this step's output
      const auto output_gradient = [&](const Tile& tile) {
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          Vec dr{};
          if (s >= 0) dr += load(grad_y_ + (s * z.B + b) * R + j, lanes);
          if (!flows) dr += load(grad_r_ + b * R + j, lanes);
          if (bounded) dr += bounded_r.take(b, j, lanes, factor_r);
          store(sum + i, dr);
        });
        if (flows && !bounded) multiply(tile, s + 1);
      };
      const auto cell_gradient = [&](int64_t b, int64_t j, int64_t lanes) {
        return bounded ? bounded_now.take(b, j, lanes, factor_c) : load(carried_ + b * z.H + j, lanes);
      };
      if (s < 0) {
        for_tiles(fed, blocks, wide, team, me, [&](const Tile& tile) {
          output_gradient(tile);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            store(grad_r_0_ + b * R + j, load(sum + i), lanes);
          });
        });
        for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
          tile.each([&](int64_t, int64_t b, int64_t j, int64_t lanes) {
            store(carried_ + b * z.H + j, cell_gradient(b, j, lanes), lanes);
          });
        });
        break;
      }
      if (widen) {
        for_tiles(fed, blocks, wide, team, me, [&](const Tile& tile) {
          output_gradient(tile);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            store(grad_product_ + (s * z.B + b) * R + j, load(sum + i), lanes);
          });
          tile.pack(sum, narrow_);
        });
        barrier.wait(team);
      }
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        if (widen) {
          std::fill_n(sum, tile.size(), 0.0f);
          widen->multiply(tile, narrow_, sum);
        } else {
          output_gradient(tile);
        }
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const int64_t at = (s * z.B + b) * z.H + j;
          const auto gate = [&](int64_t n) { return load(gates_ + ((s * z.B + b) * 4 + n) * z.H + j, lanes); };
          const Vec in = gate(0), forget = gate(1), g = gate(2), o = gate(3), m = tanh(load(cells_ + at, lanes));
          const Vec dm = load(sum + i), dc = cell_gradient(b, j, lanes) + dm * o * (1.0f - m * m);
          const Vec before = load((s ? cells_ + at - z.B * z.H : c_0_ + at), lanes);
          const Vec arguments[] = {dc * g * (in * (1.0f - in)), dc * before * (forget * (1.0f - forget)),
                                   dc * in * (1.0f - g * g), dm * m * (o * (1.0f - o))};
          for (int64_t n = 0; n < 4; ++n) {
            store(parts[n] + i, arguments[n]);
            store(grad_u_ + (s * z.B + b) * z.G + n * z.H + j, arguments[n], lanes);
          }
          store(carried_ + b * z.H + j, dc * forget, lanes);
          if (bound) bounded_c[(s + 1) & 1].put(b, j, dc * forget, lanes);
        });
        for (int64_t n = 0; n < 4; ++n) tile.pack(parts[n], slot(s, n));
      });
      barrier.wait(team);
    }
  }
  return {grad_u, grad_r_0, carried, grad_product};
}

}  // namespace
