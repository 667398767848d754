// The CPU kernels: scans over time, the cross entropy of the output layer, the update of weights and their noise.
// The Python files beside it say what each operator computes and check every argument; nothing is checked twice here.
//
// Results do not depend on the number of threads: threads share out columns, rows or blocks, and every sum is taken by
// one of them in one order.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <omp.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "products.h"
#include "transition.h"
#include "vectors.h"

namespace {

enum class Pooling { sum, max, gated };

Pooling pooling_of(c10::string_view name) {
  return name == "sum" ? Pooling::sum : name == "max" ? Pooling::max : Pooling::gated;
}

// All steps from the first to the last. Also returns what the backward pass needs, where `keep`: with max pooling
// which tap won (T, B, H), counted from 1; with gated pooling the gates and the taps (T, B, K, H).
std::tuple<Tensor, Tensor, Tensor, Tensor> scan(const Tensor& u, const Tensor& history, const Tensor& weight,
                                                const std::optional<Tensor>& gate_weight,
                                                c10::string_view pooling_name, c10::string_view activation_name,
                                                bool keep, int64_t threads) {
  const Pooling pooling = pooling_of(pooling_name);
  const Activation f = activation_of(activation_name);
  const bool gated = pooling == Pooling::gated;
  const Sizes z(u.size(0), history, gated);
  const int64_t per = gated ? 2 : 1;  // panels of weights for a panel of the state
  const std::vector<Block> blocks = blocks_of(z.B);
  const int64_t wide = widest(blocks.back().rows) / per;

  Tensor y = at::empty({z.T, z.B, z.H}, at::kFloat);
  Tensor winners = at::empty({keep && pooling == Pooling::max ? z.T : 0, z.B, z.H}, at::kFloat);
  Tensor gates = at::empty({keep && gated ? z.T : 0, z.B, z.K, z.H}, at::kFloat);
  Tensor taps = at::empty(gates.sizes(), at::kFloat);
  Tensor packed = buffer(z.K * z.panels * per * z.H * W);
  Tensor ring = buffer((z.K + 1) * z.B * z.H);  // the states t - K .. t, packed: state t in slot t mod K + 1

  const float* u_ = u.const_data_ptr<float>();
  const float* history_ = history.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  float* y_ = y.mutable_data_ptr<float>();
  float* gates_ = gates.mutable_data_ptr<float>();
  float* taps_ = taps.mutable_data_ptr<float>();
  float* winners_ = winners.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  const auto slot = [&](int64_t t) { return ring_ + (t + z.K + 1) % (z.K + 1) * z.B * z.H; };

  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t panel = z.K * z.H * W;
    pack_weights(weight.const_data_ptr<float>(), true, z, per * panel, packed.mutable_data_ptr<float>());
    if (gated)
      pack_weights(gate_weight->const_data_ptr<float>(), true, z, per * panel,
                   packed.mutable_data_ptr<float>() + panel);
#pragma omp for
    for (int64_t n = 1; n <= z.K; ++n)
      for (const Block& block : blocks)
        block.kernels().pack_rows(history_ + ((n - 1) * z.B + block.start) * z.H, z.H, z.H,
                                  slot(-n) + block.start * z.H);

    float sum[ACCUMULATORS * W], part[ACCUMULATORS * W], winner[ACCUMULATORS * W];
    for (int64_t t = 0; t < z.T; ++t) {
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        const auto multiply = [&](int64_t n, float* out) {  // out += W_n h_{t-n}
          tile.block.kernels().product(tile.columns * per)(slot(t - n) + tile.block.start * z.H,
                                                           packed_ + tile.p * per * panel + (n - 1) * z.H * W, panel,
                                                           z.H, out);
        };
        const auto input = [&](int64_t b, int64_t j) { return u_ + (t * z.B + b) * z.G + j; };
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t) {
          store(sum + i, Vec{});
          for (int64_t n = 0; n < z.G / z.H; ++n) __builtin_prefetch(input(b, n * z.H + j));
        });
        for (int64_t n = 1; n <= z.K; ++n) {
          if (pooling == Pooling::sum || (pooling == Pooling::max && n == 1)) {
            multiply(n, sum);
            if (n == 1) std::fill(winner, winner + ACCUMULATORS * W, 1.0f);
            continue;
          }
          std::fill(part, part + ACCUMULATORS * W, 0.0f);
          multiply(n, part);
          if (pooling == Pooling::max) {
            tile.each([&](int64_t i, int64_t, int64_t, int64_t) {
              const Vec tap = load(part + i), most = load(sum + i);
              const Ints wins = ~(tap <= most) & (most == most);  // the first of equals; a NaN wins and stays
              store(sum + i, wins ? tap : most);
              store(winner + i, wins ? splat(n) : load(winner + i));
            });
          } else {
            tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
              const Vec tap = load(part + 2 * i);
              const Vec r = sigmoid(load(part + 2 * i + W) + load(input(b, n * z.H + j), lanes));
              store(sum + i, load(sum + i) + r * tap);
              if (keep) {
                const int64_t at = ((t * z.B + b) * z.K + n - 1) * z.H + j;
                store(gates_ + at, r, lanes);
                store(taps_ + at, tap, lanes);
              }
            });
          }
        }
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const Vec h = activate(load(sum + i) + load(input(b, j), lanes), f);
          store(sum + i, h);
          store(y_ + (t * z.B + b) * z.H + j, h, lanes);
          if (keep && pooling == Pooling::max) store(winners_ + (t * z.B + b) * z.H + j, load(winner + i), lanes);
        });
        tile.pack(sum, slot(t));
      });
      barrier.wait(team);
    }
  }
  return {y, winners, gates, taps};
}

// out[j][k] = sum over rows of g[row][j] states[row][k]; g has `ld` floats a row, the states are panels.
struct WeightGradient {
  const float *g, *states;
  int64_t ld;
  float* out;
};

// All steps from the last to the first, and then the steps of the history, where its gradient is needed, for the
// gradients of the states; after them the gradients of the weights. `bound` is for sum pooling of one state.
std::tuple<Tensor, Tensor, Tensor, Tensor> scan_backward(
    const Tensor& grad_y, const Tensor& grad_last, const Tensor& y, const Tensor& history, const Tensor& weight,
    const std::optional<Tensor>& gate_weight, const Tensor& winners, const Tensor& gates, const Tensor& taps,
    c10::string_view pooling_name, c10::string_view activation_name, std::optional<double> bound, bool need_history,
    bool need_weights, int64_t threads) {
  const Pooling pooling = pooling_of(pooling_name);
  const Activation f = activation_of(activation_name);
  const bool gated = pooling == Pooling::gated, max = pooling == Pooling::max;
  const Sizes z(y.size(0), history, gated);
  const int64_t rows = z.T * z.B, past = z.K * z.B;
  const std::vector<Block> blocks = blocks_of(z.B), outputs = blocks_of(z.H);
  const int64_t wide = widest(blocks.back().rows);

  Tensor grad_u = at::empty({z.T, z.B, z.G}, at::kFloat);
  Tensor grad_history = at::empty({need_history ? z.K : 0, z.B, z.H}, at::kFloat);
  Tensor grad_weight = at::empty({need_weights ? z.K : 0, z.H, z.H}, at::kFloat);
  Tensor grad_gate_weight = at::empty({need_weights && gated ? z.K : 0, z.H, z.H}, at::kFloat);
  // The gradient of W_n h_{t-n}; with sum pooling it is the gradient of u for every n.
  Tensor grad_taps = at::empty({gated || max ? z.T : 0, z.B, z.K, z.H}, at::kFloat);
  // What flows back through the matrices from the steps s .. s + K, packed; step s in slot s mod K + 1.
  const int64_t sources = gated ? 2 * z.K : max ? z.K : 1;
  Tensor ring = buffer((z.K + 1) * sources * z.B * z.H);
  Tensor packed = buffer((gated ? 2 : 1) * z.K * z.panels * z.H * W);
  Tensor states = buffer(need_weights ? z.panels * (past + rows) * W : 0);

  const float* grad_y_ = grad_y.const_data_ptr<float>();
  const float* grad_last_ = grad_last.const_data_ptr<float>();
  const float* y_ = y.const_data_ptr<float>();
  const float* history_ = history.const_data_ptr<float>();
  const float* gates_ = gates.const_data_ptr<float>();
  const float* taps_ = taps.const_data_ptr<float>();
  const float* winners_ = winners.const_data_ptr<float>();
  float* grad_u_ = grad_u.mutable_data_ptr<float>();
  float* grad_taps_ = grad_taps.mutable_data_ptr<float>();
  float* grad_history_ = grad_history.mutable_data_ptr<float>();
  float* packed_ = packed.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  float* states_ = states.mutable_data_ptr<float>();
  const auto slot = [&](int64_t s, int64_t source) {
    return ring_ + (s % (z.K + 1) * sources + source) * z.B * z.H;
  };

  std::vector<WeightGradient> gradients;
  for (int64_t n = 1; need_weights && n <= z.K; ++n) {
    const float* taken = states_ + (past - n * z.B) * W;  // h_{t-n} for every t
    float* out = grad_weight.mutable_data_ptr<float>() + (n - 1) * z.H * z.H;
    if (gated || max)
      gradients.push_back({grad_taps_ + (n - 1) * z.H, taken, z.K * z.H, out});
    else
      gradients.push_back({grad_u_, taken, z.G, out});
    if (gated)
      gradients.push_back({grad_u_ + n * z.H, taken, z.G,
                           grad_gate_weight.mutable_data_ptr<float>() + (n - 1) * z.H * z.H});
  }

  Bounded carried(bound, z);
  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t panel = z.K * z.H * W, matrices = z.panels * panel;
    pack_weights(weight.const_data_ptr<float>(), false, z, panel, packed_);
    if (gated) pack_weights(gate_weight->const_data_ptr<float>(), false, z, panel, packed_ + matrices);

    float sum[ACCUMULATORS * W], part[ACCUMULATORS * W], part_gate[ACCUMULATORS * W];
    const auto multiply = [&](const Tile& tile, int64_t t, int64_t source, const float* matrix) {
      tile.block.kernels().product(tile.columns)(slot(t, source) + tile.block.start * z.H, matrix + tile.p * panel,
                                                 panel, z.H, sum);
    };
    for (int64_t s = z.T - 1; s >= (need_history ? -z.K : 0); --s) {
      const bool bounded = carried && s < z.T - 1;
      if (bounded) {
        for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
          std::fill(sum, sum + ACCUMULATORS * W, 0.0f);
          multiply(tile, s + 1, 0, packed_);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) { carried.put(b, j, load(sum + i), lanes); });
        });
        barrier.wait(team);
      }
      const float factor = bounded ? carried.factor() : 1.0f;
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const int64_t at = (s * z.B + b) * z.H + j;
          Vec dh{};
          if (s >= 0) {
            dh += load(grad_y_ + at, lanes);
            __builtin_prefetch(y_ + at);
          }
          if (z.T - 1 - s < z.K) dh += load(grad_last_ + ((z.T - 1 - s) * z.B + b) * z.H + j, lanes);
          if (bounded) dh += carried.take(b, j, lanes, factor);
          store(sum + i, dh);
          for (int64_t n = 0; gated && s >= 0 && n < z.K; ++n) {
            __builtin_prefetch(gates_ + ((s * z.B + b) * z.K + n) * z.H + j);
            __builtin_prefetch(taps_ + ((s * z.B + b) * z.K + n) * z.H + j);
          }
        });
        for (int64_t n = std::max<int64_t>(1, -s); !bounded && n <= z.K && s + n < z.T; ++n) {
          const float* matrix = packed_ + (n - 1) * z.H * W;
          multiply(tile, s + n, gated ? 2 * n - 2 : max ? n - 1 : 0, matrix);
          if (gated) multiply(tile, s + n, 2 * n - 1, matrix + matrices);
        }
        if (s < 0) {
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            store(grad_history_ + ((-s - 1) * z.B + b) * z.H + j, load(sum + i), lanes);
          });
          return;
        }
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const Vec dz = load(sum + i) * slope(load(y_ + (s * z.B + b) * z.H + j, lanes), f);
          store(sum + i, dz);
          store(grad_u_ + (s * z.B + b) * z.G + j, dz, lanes);
        });
        if (pooling == Pooling::sum) {
          tile.pack(sum, slot(s, 0));
          return;
        }
        for (int64_t n = 1; n <= z.K; ++n) {
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            const int64_t at = ((s * z.B + b) * z.K + n - 1) * z.H + j;
            const Vec dz = load(sum + i);
            Vec dtap;
            if (max) {
              dtap = load(winners_ + (s * z.B + b) * z.H + j, lanes) == splat(n) ? dz : Vec{};
            } else {
              const Vec r = load(gates_ + at, lanes), dgate = dz * load(taps_ + at, lanes) * (r * (1.0f - r));
              dtap = dz * r;
              store(part_gate + i, dgate);
              store(grad_u_ + (s * z.B + b) * z.G + n * z.H + j, dgate, lanes);
            }
            store(part + i, dtap);
            store(grad_taps_ + at, dtap, lanes);
          });
          tile.pack(part, slot(s, max ? n - 1 : 2 * n - 2));
          if (gated) tile.pack(part_gate, slot(s, 2 * n - 1));
        }
      });
      barrier.wait(team);
    }

    if (need_weights) {
#pragma omp for
      for (int64_t p = 0; p < z.panels; ++p) {  // the states from the oldest of the history on
        float* out = states_ + p * (past + rows) * W;
        for (int64_t n = z.K; n >= 1; --n)
          pack_panel(history_ + (n - 1) * z.B * z.H + p * W, z.H, z.B, z.H - p * W, out + (past - n * z.B) * W);
        pack_panel(y_ + p * W, z.H, rows, z.H - p * W, out + past * W);
      }
      std::vector<float> left(rows * MAX_ROWS);
#pragma omp for
      for (const Block& block : outputs) {
        const float* packed_from = nullptr;
        for (const WeightGradient& gradient : gradients) {
          if (gradient.g != packed_from) {
            packed_from = gradient.g;
            block.kernels().pack_columns(gradient.g + block.start, gradient.ld, rows, left.data());
          }
          int64_t columns = widest(block.rows);
          for (int64_t p = 0; p < z.panels; p += columns) {
            while (columns > z.panels - p) columns /= 2;
            std::fill(sum, sum + ACCUMULATORS * W, 0.0f);
            block.kernels().product(columns)(left.data(), gradient.states + p * (past + rows) * W,
                                             (past + rows) * W, rows, sum);
            for (int r = 0; r < block.rows; ++r)
              for (int64_t c = 0; c < columns; ++c)
                store(gradient.out + (block.start + r) * z.H + (p + c) * W, load(sum + (r * columns + c) * W),
                      z.H - (p + c) * W);
          }
        }
      }
    }
  }
  return {grad_u, grad_history, grad_weight, grad_gate_weight};
}

// The sizes of an LSTM's products: four matrices act on one state.
Sizes lstm_sizes(const Tensor& u, const Tensor& h) {
  Sizes z(u.size(0), h.unsqueeze(0), false);
  z.K = 4;
  z.G = 4 * z.H;
  return z;
}

// Of an LSTM with the gates i, f, g, o stacked in u (T, B, 4 H) and weight (4 H, H): the outputs and the cells
// (T, B, H), and where `keep` the gates (T, B, 4, H) that the backward pass needs.
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& u, const Tensor& h_0, const Tensor& c_0, const Tensor& weight,
                                        bool keep, int64_t threads) {
  const Sizes z = lstm_sizes(u, h_0);
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
  const Sizes z = lstm_sizes(grad_y, c_0);
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

// s_t = kept s_{t-1} + (1 - kept) b_t, element by element: b (T, B, C), s_0 (B, C), kept (C) -> s (T, B, C). It is too
// little work for a second thread.
Tensor leak(const Tensor& b, const Tensor& s_0, const Tensor& kept) {
  const int64_t rows = b.size(1), C = b.size(2);
  Tensor s = at::empty(b.sizes(), at::kFloat);
  const float* b_t = b.const_data_ptr<float>();
  const float* past = s_0.const_data_ptr<float>();
  const float* kept_ = kept.const_data_ptr<float>();
  float* s_t = s.mutable_data_ptr<float>();
  for (int64_t t = 0; t < b.size(0); ++t, past = s_t, s_t += rows * C, b_t += rows * C)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < C; j += W) {
        const int64_t at = row * C + j, lanes = C - j;
        const Vec x = load(b_t + at, lanes);
        store(s_t + at, x + load(kept_ + j, lanes) * (load(past + at, lanes) - x), lanes);
      }
  return s;
}

// The whole gradient of each s_t (T, B, C), and the gradient of s_0.
std::tuple<Tensor, Tensor> leak_backward(const Tensor& grad_s, const Tensor& grad_last, const Tensor& kept,
                                         std::optional<double> bound) {
  const int64_t T = grad_s.size(0), rows = grad_s.size(1), C = grad_s.size(2);
  Tensor whole = at::empty(grad_s.sizes(), at::kFloat), carried = grad_last.clone();
  const float* kept_ = kept.const_data_ptr<float>();
  float* carried_ = carried.mutable_data_ptr<float>();
  float factor = 1.0f;
  for (int64_t t = T - 1; t >= 0; --t) {
    const float* grad_t = grad_s.const_data_ptr<float>() + t * rows * C;
    float* whole_t = whole.mutable_data_ptr<float>() + t * rows * C;
    Doubles squares{};
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < C; j += W) {
        const int64_t at = row * C + j, lanes = C - j;
        const Vec x = load(grad_t + at, lanes) + factor * load(carried_ + at, lanes);
        const Vec back = load(kept_ + j, lanes) * x;
        store(whole_t + at, x, lanes);
        store(carried_ + at, back, lanes);
        const Doubles wide = __builtin_convertvector(back, Doubles);
        squares += wide * wide;
      }
    const double square = total(squares);
    factor = bound && square > *bound * *bound ? *bound / std::sqrt(square) : 1.0;
  }
  return {whole, carried.mul_(factor)};
}

inline Vec read(const float* p) { return load(p); }
inline Vec read(const uint16_t* p) {
  const Halves x = *reinterpret_cast<const HalvesInMemory*>(p);
  return reinterpret_cast<Vec>(__builtin_convertvector(x, Bits) << 16);
}

inline void write(float* p, Vec x) { store(p, x); }
inline void write(uint16_t* p, Vec x) {  // to the nearest, ties to even
  const Bits bits = reinterpret_cast<Bits>(x);
  const Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  *reinterpret_cast<HalvesInMemory*>(p) = __builtin_convertvector(rounded, Halves);
}

inline Vec read(const float* p, int64_t count) { return load(p, count); }
inline Vec read(const uint16_t* p, int64_t count) {
  if (count >= W) return read(p);
  uint16_t x[W] = {};
  std::copy(p, p + count, x);
  return read(x);
}

inline void write(uint16_t* p, Vec x, int64_t count) {
  if (count >= W) return write(p, x);
  uint16_t rounded[W];
  write(rounded, x);
  std::copy(rounded, rounded + count, p);
}

// One row of logits: its negative log-likelihood in nats; with `overwrite` the row becomes (softmax - one-hot) times
// `scale`, which is also added to `bias_sum` where there is a bias. `x` is room for V floats rounded up to whole
// vectors.
template <class Element>
double cross_entropy_row(Element* row, const float* bias, int64_t target, int64_t V, bool overwrite, float scale,
                         float* bias_sum, float* x) {
  const int64_t whole = V / W * W, padded = panels_of(V) * W;
  const int64_t rest = V - whole;
  Element tail[W] = {};
  std::copy(row + whole, row + V, tail);
  Vec most = splat(-std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < padded; i += W) {
    Vec v = read(i < whole ? row + i : tail);
    if (bias) v += load(bias + i, V - i);
    if (i == whole)
      for (int64_t l = rest; l < W; ++l) v[l] = -std::numeric_limits<float>::infinity();
    store(x + i, v);
    most = v > most ? v : most;
  }
  float largest = most[0];
  for (int l = 1; l < W; ++l) largest = std::max(largest, most[l]);
  const float wanted = x[target];

  double sum = 0;
  for (int64_t start = 0; start < padded; start += 256 * W) {  // few enough terms for fp32
    Vec partial{};
    for (int64_t i = start; i < std::min(start + 256 * W, padded); i += W) {
      const Vec e = exp(load(x + i) - largest);
      store(x + i, e);
      partial += e;
    }
    sum += total(partial);
  }
  if (overwrite) {
    const float share = static_cast<float>(scale / sum);
    for (int64_t i = 0; i < padded; i += W) store(x + i, load(x + i) * share);
    x[target] -= scale;
    for (int64_t i = 0; i < whole; i += W) write(row + i, load(x + i));
    if (rest) {
      write(tail, load(x + whole));
      std::copy(tail, tail + rest, row + whole);
    }
    for (int64_t i = 0; bias && i < V; i += W) store(bias_sum + i, load(bias_sum + i, V - i) + load(x + i), V - i);
  }
  return std::log(sum) + (static_cast<double>(largest) - wanted);
}

template <class Element>
void cross_entropy_rows(Element* logits, const float* bias, const int64_t* targets, int64_t N, int64_t V,
                        bool overwrite, float scale, int64_t threads, double* nll, float* grad_bias) {
  const int64_t share = 16;  // rows
  std::vector<std::vector<float>> bias_sums((N + share - 1) / share);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> x(panels_of(V) * W);
#pragma omp for
    for (size_t k = 0; k < bias_sums.size(); ++k) {
      if (bias && overwrite) bias_sums[k].assign(V, 0.0f);
      for (int64_t i = k * share; i < std::min<int64_t>(N, (k + 1) * share); ++i) {
        Element* row = logits + i * V;
        if (targets[i] >= 0) {
          nll[i] = cross_entropy_row(row, bias, targets[i], V, overwrite, scale, bias_sums[k].data(), x.data());
        } else {
          nll[i] = 0;
          if (overwrite) std::fill(row, row + V, Element{});
        }
      }
    }
  }
  for (const std::vector<float>& bias_sum : bias_sums)
    for (size_t j = 0; j < bias_sum.size(); ++j) grad_bias[j] += bias_sum[j];
}

std::tuple<Tensor, Tensor> cross_entropy(const Tensor& logits, const std::optional<Tensor>& bias,
                                         const Tensor& targets, bool overwrite, double scale, int64_t threads) {
  const int64_t N = logits.size(0), V = logits.size(1);
  Tensor nll = at::empty({N}, at::kDouble);
  Tensor grad_bias = at::zeros({bias && overwrite ? V : 0}, at::kFloat);
  const auto run = [&](auto* data) {
    cross_entropy_rows(data, bias ? bias->const_data_ptr<float>() : nullptr, targets.const_data_ptr<int64_t>(), N, V,
                       overwrite, scale, threads, nll.mutable_data_ptr<double>(), grad_bias.mutable_data_ptr<float>());
  };
  if (logits.scalar_type() == at::kFloat)
    run(static_cast<float*>(logits.data_ptr()));
  else
    run(static_cast<uint16_t*>(logits.data_ptr()));
  return {nll, grad_bias};
}

typedef uint16_t Eight __attribute__((vector_size(16)));
typedef uint16_t EightInMemory __attribute__((vector_size(16), aligned(2), may_alias));

// The lower and the upper halves of a and b, their numbers in turn.
#if defined(__clang__)
inline Eight lower(Eight a, Eight b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Eight upper(Eight a, Eight b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
#else
inline Eight lower(Eight a, Eight b) { return __builtin_shuffle(a, b, Eight{0, 8, 1, 9, 2, 10, 3, 11}); }
inline Eight upper(Eight a, Eight b) { return __builtin_shuffle(a, b, Eight{4, 12, 5, 13, 6, 14, 7, 15}); }
#endif

// out (columns, rows) = x (rows, columns), of 16-bit numbers.
void transpose_halves(const uint16_t* x, int64_t rows, int64_t columns, uint16_t* out, int64_t threads) {
  constexpr int64_t side = 8, tall = 4 * side;  // rows at a time: a cache line of the result
#pragma omp parallel for num_threads(threads)
  for (int64_t first = 0; first < rows; first += tall)
    for (int64_t j = 0; j < columns; j += side)
      for (int64_t i = first; i < std::min(first + tall, rows); i += side) {
        if (i + side > rows || j + side > columns) {
          for (int64_t k = i; k < std::min(i + side, rows); ++k)
            for (int64_t l = j; l < std::min(j + side, columns); ++l) out[l * rows + k] = x[k * columns + l];
          continue;
        }
        Eight square[side], next[side];
        for (int64_t k = 0; k < side; ++k)
          square[k] = *reinterpret_cast<const EightInMemory*>(x + (i + k) * columns + j);
        for (int round = 0; round < 3; ++round) {  // row k in turn with row k + 4: after three rounds columns are rows
          for (int64_t k = 0; k < side / 2; ++k) {
            next[2 * k] = lower(square[k], square[k + side / 2]);
            next[2 * k + 1] = upper(square[k], square[k + side / 2]);
          }
          std::copy(next, next + side, square);
        }
        for (int64_t l = 0; l < side; ++l) *reinterpret_cast<EightInMemory*>(out + (j + l) * rows + i) = square[l];
      }
}

Tensor transpose(const Tensor& x, int64_t threads) {
  Tensor out = at::empty({x.size(1), x.size(0)}, x.options());
  transpose_halves(static_cast<const uint16_t*>(x.const_data_ptr()), x.size(0), x.size(1),
                   static_cast<uint16_t*>(out.mutable_data_ptr()), threads);
  return out;
}

constexpr int64_t BLOCK = 4096;  // floats that a thread takes at a time

// Calls `run` with the numbers of a gradient, fp32 or bf16.
template <class Run>
void with_elements(const Tensor& grad, const Run& run) {
  if (grad.scalar_type() == at::kFloat)
    run(grad.const_data_ptr<float>());
  else
    run(static_cast<const uint16_t*>(grad.const_data_ptr()));
}

template <class Element>
double sum_of_squares(const Element* g, int64_t size, int64_t threads) {
  const int64_t blocks = (size + BLOCK - 1) / BLOCK;
  std::vector<double> squares(blocks);
#pragma omp parallel for num_threads(threads) if (blocks > 8)
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t end = std::min(size, (i + 1) * BLOCK);
    Doubles sums[4]{};  // several, since each addition waits for the one before it
    const auto add = [&](Vec x, int k) {
      const Doubles wide = __builtin_convertvector(x, Doubles);
      sums[k] += wide * wide;
    };
    int64_t j = i * BLOCK;
    for (; j + 4 * W <= end; j += 4 * W)
      for (int k = 0; k < 4; ++k) add(read(g + j + k * W), k);
    for (; j < end; j += W) add(read(g + j, end - j), 0);
    const Doubles sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int l = 0; l < W; ++l) squares[i] += sum[l];
  }
  double sum = 0;
  for (const double square : squares) sum += square;
  return sum;
}

double grad_norm(at::TensorList grads, int64_t threads) {
  double sum = 0;
  for (const Tensor& grad : grads)
    with_elements(grad, [&](const auto* g) { sum += sum_of_squares(g, grad.numel(), threads); });
  return std::sqrt(sum);
}

struct Constants {
  float rate, mu, keep, bound, factor;
  double max_norm;
};

// One weight; `grad` is null where it is zero, `copy` where no copy in bf16 is wanted, `momentum` empty without one.
template <class Element>
void update(const Constants& z, const Tensor& param, const Tensor& momentum, const Element* grad, uint16_t* copy,
            int64_t threads) {
  float* weight = param.mutable_data_ptr<float>();
  float* velocity = momentum.numel() ? momentum.mutable_data_ptr<float>() : nullptr;
  const bool bounded = z.max_norm > 0 && param.dim() > 1;
  const int64_t size = param.numel(), length = bounded ? param.size(-1) : BLOCK;
  const int64_t rows = (size + length - 1) / length;
#pragma omp parallel for num_threads(threads) if (size > 8 * BLOCK)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t start = row * length, end = std::min(size, start + length);
    Doubles squares{};
    for (int64_t i = start; i < end; i += W) {
      Vec g = grad ? z.factor * read(grad + i, end - i) : Vec{};
      g = g < -z.bound ? splat(-z.bound) : g;
      g = g > z.bound ? splat(z.bound) : g;
      Vec m = -z.rate * g;
      if (velocity) {
        m += z.mu * load(velocity + i, end - i);
        store(velocity + i, m, end - i);
      }
      const Vec w = z.keep * load(weight + i, end - i) + m;
      store(weight + i, w, end - i);
      if (copy) write(copy + i, w, end - i);
      if (bounded) {
        const Doubles wide = __builtin_convertvector(w, Doubles);
        squares += wide * wide;
      }
    }
    if (!bounded) continue;
    double square = 0;
    for (int l = 0; l < W; ++l) square += squares[l];
    if (square > z.max_norm * z.max_norm) {
      const float shrink = z.max_norm / std::sqrt(square);
      for (int64_t i = start; i < end; i += W) {
        const Vec w = shrink * load(weight + i, end - i);
        store(weight + i, w, end - i);
        if (copy) write(copy + i, w, end - i);
      }
    }
  }
}

void momentum_update(at::TensorList params, at::TensorList momenta, at::TensorList grads, at::TensorList copies,
                     double lr, double momentum, double decay, double clip, double scale, double max_norm,
                     int64_t threads) {
  const Constants z{static_cast<float>(lr),   static_cast<float>(momentum), static_cast<float>(1 - lr * decay),
                    static_cast<float>(clip), static_cast<float>(scale),    max_norm};
  for (size_t k = 0; k < params.size(); ++k) {
    uint16_t* copy = copies[k].numel() ? static_cast<uint16_t*>(copies[k].mutable_data_ptr()) : nullptr;
    const bool zero = !grads[k].numel();
    with_elements(grads[k], [&](const auto* g) {
      update(z, params[k], momenta[k], zero ? nullptr : g, copy, threads);
    });
  }
}

inline Bits rotate(Bits x, int bits) { return (x << bits) | (x >> (32 - bits)); }

// Random bits, a sequence for each lane: xoshiro128++ (Blackman & Vigna 2021), begun by hashing what is to be unique,
// by the finalizer of MurmurHash3 (Appleby).
class RandomBits {
 public:
  RandomBits(uint64_t seed, uint32_t row) {
    for (uint32_t k = 0; k < 4; ++k)
      for (uint32_t l = 0; l < W; ++l) words[k][l] = (4 * row + k) * W + l;
    for (Bits& word : words) word = mixed(mixed(word ^ static_cast<uint32_t>(seed)) + static_cast<uint32_t>(seed >> 32));
  }

  Bits next() {
    const Bits result = rotate(words[0] + words[3], 7) + words[0], shifted = words[1] << 9;
    words[2] ^= words[0];
    words[3] ^= words[1];
    words[1] ^= words[2];
    words[0] ^= words[3];
    words[2] ^= shifted;
    words[3] = rotate(words[3], 11);
    return result;
  }

 private:
  static Bits mixed(Bits x) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
  }

  Bits words[4];
};

// ln x of a normal number x > 0: ln of its power of two and 2 artanh s of the rest, whose series ends below 2e-9.
inline Vec log(Vec x) {
  const Bits bits = reinterpret_cast<Bits>(x) - 0x3f3504f3u;  // sqrt(1/2): the rest lies in [sqrt(1/2), sqrt(2))
  const Vec exponent = __builtin_convertvector(reinterpret_cast<Ints>(bits) >> 23, Vec);
  const Vec rest = reinterpret_cast<Vec>((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const Vec s = rest / (rest + 2.0f), square = s * s;
  Vec series = square * (1.0f / 9) + 1.0f / 7;
  series = series * square + 1.0f / 5;
  series = series * square + 1.0f / 3;
  return exponent * 0.693147181f + (2.0f * s + 2.0f * s * square * series);
}

// sqrt(x) of x >= 0: x / sqrt(x), the root by Newton's method from a guess of its exponent.
inline Vec root(Vec x) {
  Vec y = reinterpret_cast<Vec>(0x5f3759dfu - (reinterpret_cast<Bits>(x) >> 1));
  for (int round = 0; round < 3; ++round) y *= 1.5f - 0.5f * x * y * y;
  return x * y;
}

// Two vectors of independent N(0, 1): the radius and the angle of Box & Muller (1958). None is beyond 5.8, which one in
// 10^8 should be.
inline std::array<Vec, 2> normals(RandomBits& random) {
  const Bits first = random.next(), second = random.next();
  const Vec uniform = (__builtin_convertvector(first >> 8, Vec) + 1.0f) * 0x1p-24f;  // (0, 1]
  // An angle within 45 degrees of the diagonal, and a sign for each axis. The series leave out less than 3e-8.
  const Vec a = (__builtin_convertvector(second >> 8, Vec) - 0x1p23f) * (1.57079633f * 0x1p-24f), square = a * a;
  Vec sine = square * (1.0f / 362880) - 1.0f / 5040;
  sine = a + a * square * ((sine * square + 1.0f / 120) * square - 1.0f / 6);
  Vec cosine = square * (1.0f / 40320) - 1.0f / 720;
  cosine = 1.0f + square * ((cosine * square + 1.0f / 24) * square - 0.5f);
  const Vec radius = root(-log(uniform));  // sqrt(-2 ln u), over sqrt(2)
  const Vec x = radius * (cosine - sine), y = radius * (cosine + sine);
  return {reinterpret_cast<Vec>(reinterpret_cast<Bits>(x) ^ (second << 31)),
          reinterpret_cast<Vec>(reinterpret_cast<Bits>(y) ^ ((second << 30) & 0x80000000u))};
}

// weight (M, N) += N(0, std^2), in all rows or in some; a row's noise is a function of `seed` and of its number.
void add_noise(const Tensor& weight, const std::optional<Tensor>& rows, double std, int64_t seed, int64_t threads) {
  const int64_t N = weight.size(-1), count = rows ? rows->numel() : weight.numel() / N;
  const int64_t* chosen = rows ? rows->const_data_ptr<int64_t>() : nullptr;
  float* weight_ = weight.mutable_data_ptr<float>();
  const float scale = std;
#pragma omp parallel for num_threads(threads) if (count * N > BLOCK)
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = chosen ? chosen[i] : i;
    RandomBits random(seed, row);
    float* w = weight_ + row * N;
    for (int64_t j = 0; j < N; j += 2 * W) {
      const auto [x, y] = normals(random);
      store(w + j, load(w + j, N - j) + scale * x, N - j);
      if (j + W < N) store(w + j + W, load(w + j + W, N - j - W) + scale * y, N - j - W);
    }
  }
}

}  // namespace

#define OPERATORS(name, library) TORCH_LIBRARY(name, library)

OPERATORS(HORNN_NAMESPACE, library) {
  library.def(
      "scan(Tensor u, Tensor history, Tensor weight, Tensor? gate_weight, str pooling, str activation, bool keep,"
      " int threads) -> (Tensor, Tensor, Tensor, Tensor)",
      &scan);
  library.def(
      "scan_backward(Tensor grad_y, Tensor grad_last, Tensor y, Tensor history, Tensor weight, Tensor? gate_weight,"
      " Tensor winners, Tensor gates, Tensor taps, str pooling, str activation, float? bound, bool need_history,"
      " bool need_weights, int threads) -> (Tensor, Tensor, Tensor, Tensor)",
      &scan_backward);
  library.def(
      "lstm(Tensor u, Tensor h_0, Tensor c_0, Tensor weight, bool keep, int threads) -> (Tensor, Tensor, Tensor)",
      &lstm);
  library.def(
      "lstm_backward(Tensor grad_y, Tensor grad_h, Tensor grad_c, Tensor c_0, Tensor weight, Tensor cells,"
      " Tensor gates, float? bound, int threads) -> (Tensor, Tensor, Tensor)",
      &lstm_backward);
  library.def(
      "transition(Tensor u, Tensor h_0, Tensor[] weights, Tensor[] shortcuts, str[] activations, bool keep,"
      " int threads) -> (Tensor, Tensor)",
      &transition);
  library.def(
      "transition_backward(Tensor grad_y, Tensor grad_last, Tensor y, Tensor hidden, Tensor[] weights,"
      " Tensor[] shortcuts, str[] activations, float? bound, int threads) -> (Tensor, Tensor)",
      &transition_backward);
  library.def("leak(Tensor b, Tensor s_0, Tensor kept) -> Tensor", &leak);
  library.def("leak_backward(Tensor grad_s, Tensor grad_last, Tensor kept, float? bound) -> (Tensor, Tensor)",
              &leak_backward);
  library.def(
      "cross_entropy(Tensor(a!) logits, Tensor? bias, Tensor targets, bool overwrite, float scale,"
      " int threads) -> (Tensor, Tensor)",
      &cross_entropy);
  library.def("transpose(Tensor x, int threads) -> Tensor", &transpose);
  library.def("grad_norm(Tensor[] grads, int threads) -> float", &grad_norm);
  library.def(
      "momentum_update(Tensor(a!)[] params, Tensor(b!)[] momenta, Tensor[] grads, Tensor(c!)[] copies, float lr,"
      " float momentum,"
      " float decay, float clip, float scale, float max_norm, int threads) -> ()",
      &momentum_update);
  library.def("add_noise(Tensor(a!) weight, Tensor? rows, float std, int seed, int threads) -> ()", &add_noise);
}
