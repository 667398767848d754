// The scan of the LSTM.
#pragma once

#include <omp.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "products.h"
#include "vectors.h"

namespace {

// Of an LSTM with the gates i, f, g, o stacked in u (T, B, 4 H) and weight (4 H, H): the outputs and the cells
// (T, B, H), and where `keep` the gates (T, B, 4, H) that the backward pass needs.
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& u, const Tensor& h_0, const Tensor& c_0, const Tensor& weight,
                                        bool keep, int64_t threads) {
  const Sizes z = Sizes::of_gates(u.size(0), h_0, 4);
  const std::vector<Block> blocks = blocks_of(z.B);
  const int64_t wide = widest(blocks.back().rows);  // gates at a time

  Tensor y = at::empty({z.T, z.B, z.H}, at::kFloat);
  Tensor cells = at::empty({z.T, z.B, z.H}, at::kFloat);
  Tensor gates = at::empty({keep ? z.T : 0, z.B, 4, z.H}, at::kFloat);
  Tensor packed = buffer(4 * z.panels * z.H * W);
  Tensor ring = buffer(2 * z.B * z.H);  // the outputs of this step and of the last one, packed

  const float* u_ = u.const_data_ptr<float>();
  const float* c_0_ = c_0.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  float* y_ = y.mutable_data_ptr<float>();
  float* cells_ = cells.mutable_data_ptr<float>();
  float* gates_ = gates.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  const auto slot = [&](int64_t t) { return ring_ + (t + 2) % 2 * z.B * z.H; };

  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t panel = z.H * W;
    pack_weights(weight.const_data_ptr<float>(), true, z, 4 * panel, packed.mutable_data_ptr<float>());
#pragma omp for
    for (size_t i = 0; i < blocks.size(); ++i)
      blocks[i].kernels().pack_rows(h_0.const_data_ptr<float>() + blocks[i].start * z.H, z.H, z.H,
                                    slot(-1) + blocks[i].start * z.H);

    float sums[4 * MAX_ROWS * W], out[MAX_ROWS * W];
    for (int64_t t = 0; t < z.T; ++t) {
      for_tiles(z, blocks, 1, team, me, [&](const Tile& tile) {
        const int rows = tile.block.rows;
        std::fill(sums, sums + 4 * rows * W, 0.0f);
        for (int64_t gate = 0; gate < 4; gate += wide)
          tile.block.kernels().product(wide)(slot(t - 1) + tile.block.start * z.H,
                                             packed_ + (tile.p * 4 + gate) * panel, panel, z.H,
                                             sums + gate * rows * W);
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const int64_t row = i / W, at = (t * z.B + b) * z.H + j;
          const auto argument = [&](int64_t gate) {
            return load(sums + gate / wide * wide * rows * W + (row * wide + gate % wide) * W) +
                   load(u_ + (t * z.B + b) * z.G + gate * z.H + j, lanes);
          };
          const Vec in = sigmoid(argument(0)), forget = sigmoid(argument(1)), g = tanh(argument(2)),
                    o = sigmoid(argument(3));
          const Vec c = forget * load((t ? cells_ + at - z.B * z.H : c_0_ + at), lanes) + in * g;
          const Vec h = o * tanh(c);
          store(cells_ + at, c, lanes);
          store(y_ + at, h, lanes);
          store(out + i, h);
          if (keep) {
            const Vec kept[] = {in, forget, g, o};
            for (int64_t gate = 0; gate < 4; ++gate)
              store(gates_ + ((t * z.B + b) * 4 + gate) * z.H + j, kept[gate], lanes);
          }
        });
        tile.pack(out, slot(t));
      });
      barrier.wait(team);
    }
  }
  return {y, cells, gates};
}

// All steps from the last to the first: the gradients of u, of the first output and of the first cell.
std::tuple<Tensor, Tensor, Tensor> lstm_backward(const Tensor& grad_y, const Tensor& grad_h, const Tensor& grad_c,
                                                 const Tensor& c_0, const Tensor& weight, const Tensor& cells,
                                                 const Tensor& gates, std::optional<double> bound, int64_t threads) {
  const Sizes z = Sizes::of_gates(grad_y.size(0), c_0, 4);
  const std::vector<Block> blocks = blocks_of(z.B);

  Tensor grad_u = at::empty({z.T, z.B, z.G}, at::kFloat);
  Tensor grad_h_0 = at::empty({z.B, z.H}, at::kFloat);
  Tensor carried = grad_c.clone();  // the gradient of the cell that flows back from the step after
  Tensor packed = buffer(4 * z.panels * z.H * W);
  Tensor ring = buffer(2 * 4 * z.B * z.H);  // the gradients of the gates' arguments, of two steps, packed

  const float* grad_y_ = grad_y.const_data_ptr<float>();
  const float* grad_h_ = grad_h.const_data_ptr<float>();
  const float* c_0_ = c_0.const_data_ptr<float>();
  const float* cells_ = cells.const_data_ptr<float>();
  const float* gates_ = gates.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  float* grad_u_ = grad_u.mutable_data_ptr<float>();
  float* grad_h_0_ = grad_h_0.mutable_data_ptr<float>();
  float* carried_ = carried.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  const auto slot = [&](int64_t t, int64_t gate) { return ring_ + (t % 2 * 4 + gate) * z.B * z.H; };

  Bounded bounded_h(bound, z);
  Bounded bounded_c[] = {{bound, z}, {bound, z}};  // taken at even and at odd steps
  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t panel = 4 * z.H * W;
    pack_weights(weight.const_data_ptr<float>(), false, z, panel, packed.mutable_data_ptr<float>());

    float sum[ACCUMULATORS * W], parts[4][ACCUMULATORS * W];
    const int64_t wide = widest(blocks.back().rows);
    const auto multiply = [&](const Tile& tile, int64_t t) {
      for (int64_t gate = 0; gate < 4; ++gate)
        tile.block.kernels().product(tile.columns)(slot(t, gate) + tile.block.start * z.H,
                                                   packed_ + tile.p * panel + gate * z.H * W, panel, z.H, sum);
    };
    for (int64_t s = z.T - 1; s >= -1; --s) {
      const bool flows = s < z.T - 1, bounded = bound && flows;
      if (bounded) {
        for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
          std::fill(sum, sum + ACCUMULATORS * W, 0.0f);
          multiply(tile, s + 1);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) { bounded_h.put(b, j, load(sum + i), lanes); });
        });
        barrier.wait(team);
      }
      const Bounded& bounded_now = bounded_c[s & 1];
      const float factor_h = bounded ? bounded_h.factor() : 1.0f, factor_c = bounded ? bounded_now.factor() : 1.0f;
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          Vec dh{};
          if (s >= 0) dh += load(grad_y_ + (s * z.B + b) * z.H + j, lanes);
          if (!flows) dh += load(grad_h_ + b * z.H + j, lanes);
          if (bounded) {
            dh += bounded_h.take(b, j, lanes, factor_h);
            store(carried_ + b * z.H + j, bounded_now.take(b, j, lanes, factor_c), lanes);
          }
          store(sum + i, dh);
        });
        if (flows && !bounded) multiply(tile, s + 1);
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          if (s < 0) {
            store(grad_h_0_ + b * z.H + j, load(sum + i), lanes);
            return;
          }
          const int64_t at = (s * z.B + b) * z.H + j;
          const auto gate = [&](int64_t n) { return load(gates_ + ((s * z.B + b) * 4 + n) * z.H + j, lanes); };
          const Vec in = gate(0), forget = gate(1), g = gate(2), o = gate(3), m = tanh(load(cells_ + at, lanes));
          const Vec dh = load(sum + i), dc = load(carried_ + b * z.H + j, lanes) + dh * o * (1.0f - m * m);
          const Vec before = load((s ? cells_ + at - z.B * z.H : c_0_ + at), lanes);
          const Vec arguments[] = {dc * g * (in * (1.0f - in)), dc * before * (forget * (1.0f - forget)),
                                   dc * in * (1.0f - g * g), dh * m * (o * (1.0f - o))};
          for (int64_t n = 0; n < 4; ++n) {
            store(parts[n] + i, arguments[n]);
            store(grad_u_ + (s * z.B + b) * z.G + n * z.H + j, arguments[n], lanes);
          }
          store(carried_ + b * z.H + j, dc * forget, lanes);
          if (bound) bounded_c[(s + 1) & 1].put(b, j, dc * forget, lanes);
        });
        for (int64_t n = 0; s >= 0 && n < 4; ++n) tile.pack(parts[n], slot(s, n));
      });
      barrier.wait(team);
    }
  }
  return {grad_u, grad_h_0, carried};
}

}  // namespace
