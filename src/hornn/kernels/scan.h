// The scan of the Elman network and of the higher-order cells: pooled products with the last K states.
#pragma once

#include <omp.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "products.h"
#include "weight_gradients.h"
#include "vectors.h"

namespace {

enum class Pooling { sum, max, gated };

Pooling pooling_of(c10::string_view name) {
  return name == "sum" ? Pooling::sum : name == "max" ? Pooling::max : Pooling::gated;
}

// The products of one column with the matrices of a step, which takes as long as to read the matrices. Only W_1 waits
// for the step before: at step t all states up to t - 1 are known, so W_n multiplies n of them at once, for the steps
// t .. t + n - 1, and is read once in n steps. In fp32 alone: training has more columns.
class Ahead {
 public:
  Ahead(const Sizes& z, int64_t per, bool in_bf16)
      : step(z.panels * per * W), kept(buffer(z.B == 1 && z.K > 1 && !in_bf16 ? z.K * MOST_APART * step : 0)),
        kept_(kept.mutable_data_ptr<float>()) {}

  explicit operator bool() const { return kept.numel() > 0; }

  // out += W_n h_{t-n}, `columns` panels from p on. `state(i)` is h_{t-n+i}; `left` steps are still to come, step t
  // included. To be called for every step in turn.
  template <class State>
  void multiply(int64_t n, int64_t t, int64_t left, int64_t p, int64_t columns, State state, const float* matrix,
                int64_t panel, int64_t depth, float* out) const {
    const int64_t most = std::min<int64_t>(n, MOST_APART), now = t % most;
    float* products = kept_ + (n - 1) * MOST_APART * step + p * W;
    if (now == 0) {
      const int64_t rows = std::min(most, left);
      const float* states[MOST_APART];
      for (int64_t i = 0; i < rows; ++i) states[i] = state(i);
      PRODUCTS_APART[most - 1][rows - 1][columns / 2](states, matrix, panel, depth, products, step);
    }
    for (int64_t c = 0; c < columns; ++c) store(out + c * W, load(out + c * W) + load(products + now * step + c * W));
  }

 private:
  int64_t step;
  Tensor kept;
  float* kept_;
};

// The factors of the matrices, or none.
inline const float* factors_of(const std::optional<Tensor>& factors) {
  return factors ? factors->const_data_ptr<float>() : nullptr;
}

// All steps from the first to the last, with factors[n - 1] W_n. Returns all states (K + T, B, H), oldest first: those of
// the history, which comes newest first, then the new ones. Also what the backward pass needs, where `keep`: with max
// pooling which tap won (T, B, H), counted from 1; with gated pooling the gates and the taps (T, B, K, H).
std::tuple<Tensor, Tensor, Tensor, Tensor> scan(const Tensor& u, const Tensor& history, const Tensor& weight,
                                                const std::optional<Tensor>& gate_weight,
                                                const std::optional<Tensor>& factors, c10::string_view pooling_name,
                                                c10::string_view activation_name, bool keep, bool in_bf16,
                                                int64_t threads) {
  const Pooling pooling = pooling_of(pooling_name);
  const Activation f = activation_of(activation_name);
  const bool gated = pooling == Pooling::gated;
  const Sizes z(u.size(0), history, gated);
  const int64_t per = gated ? 2 : 1;  // panels of weights for a panel of the state
  const std::vector<Block> blocks = blocks_of(z.B, in_bf16);
  const int64_t wide = blocks.back().kernels().widest / per;

  Tensor states = at::empty({z.K + z.T, z.B, z.H}, at::kFloat);
  states.narrow(0, 0, z.K).copy_(history.flip(0));
  Tensor winners = at::empty({keep && pooling == Pooling::max ? z.T : 0, z.B, z.H}, at::kFloat);
  Tensor gates = at::empty({keep && gated ? z.T : 0, z.B, z.K, z.H}, at::kFloat);
  Tensor taps = at::empty(gates.sizes(), at::kFloat);
  const int64_t matrix = packed_size(z.H, in_bf16), panel = z.K * matrix;
  Tensor packed = buffer(z.panels * per * panel);
  Tensor ring = buffer((z.K + 1) * z.B * z.H);  // the states t - K .. t, packed: state t in slot t mod K + 1

  const float* u_ = u.const_data_ptr<float>();
  const float* history_ = history.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  float* y_ = states.mutable_data_ptr<float>() + z.K * z.B * z.H;
  float* gates_ = gates.mutable_data_ptr<float>();
  float* taps_ = taps.mutable_data_ptr<float>();
  float* winners_ = winners.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  const auto slot = [&](int64_t t) { return ring_ + (t + z.K + 1) % (z.K + 1) * z.B * z.H; };

  const Ahead ahead(z, per, in_bf16);
  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    pack_weights(weight.const_data_ptr<float>(), true, z.K, z.H, z.H, per * panel, in_bf16,
                 packed.mutable_data_ptr<float>(), factors_of(factors));
    if (gated)
      pack_weights(gate_weight->const_data_ptr<float>(), true, z.K, z.H, z.H, per * panel, in_bf16,
                 packed.mutable_data_ptr<float>() + panel);
    for (int64_t n = 1; n <= z.K; ++n) pack_left(history_ + (n - 1) * z.B * z.H, blocks, z.H, slot(-n));

    float sum[TILE], part[TILE], winner[TILE];
    for (int64_t t = 0; t < z.T; ++t) {
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        const auto multiply = [&](int64_t n, float* out) {  // out += W_n h_{t-n}
          const float* right = packed_ + tile.p * per * panel + (n - 1) * matrix;
          if (ahead)
            ahead.multiply(n, t, z.T - t, tile.p * per, tile.columns * per,
                           [&](int64_t i) { return slot(t - n + i); }, right, panel, z.H, out);
          else
            tile.block.kernels().product(tile.columns * per)(slot(t - n) + tile.block.start * z.H, right, panel, z.H,
                                                             out);
        };
        const auto input = [&](int64_t b, int64_t j) { return u_ + (t * z.B + b) * z.G + j; };
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t) {
          store(sum + i, Vec{});
          for (int64_t n = 0; n < z.G / z.H; ++n) __builtin_prefetch(input(b, n * z.H + j));
        });
        for (int64_t n = 1; n <= z.K; ++n) {
          if (pooling == Pooling::sum || (pooling == Pooling::max && n == 1)) {
            multiply(n, sum);
            if (pooling == Pooling::max) std::fill_n(winner, tile.size(), 1.0f);
            continue;
          }
          std::fill_n(part, per * tile.size(), 0.0f);
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
  return {states, winners, gates, taps};
}

// All steps from the last to the first, and then the steps of the history, where its gradient is needed, for the
// gradients of the states; after them the gradients of the weights. `states` are all of them, as `scan` returns them.
// `bound` is for sum pooling of one state.
std::tuple<Tensor, Tensor, Tensor, Tensor> scan_backward(
    const Tensor& grad_y, const Tensor& grad_last, const Tensor& states, const Tensor& weight,
    const std::optional<Tensor>& gate_weight, const std::optional<Tensor>& factors, const Tensor& winners,
    const Tensor& gates, const Tensor& taps, c10::string_view pooling_name, c10::string_view activation_name,
    std::optional<double> bound, bool need_history, bool need_weights, bool in_bf16, int64_t threads) {
  const Pooling pooling = pooling_of(pooling_name);
  const Activation f = activation_of(activation_name);
  const bool gated = pooling == Pooling::gated, max = pooling == Pooling::max;
  const Sizes z(grad_y.size(0), states.narrow(0, 0, weight.size(0)), gated);
  const std::vector<Block> blocks = blocks_of(z.B, in_bf16);
  const int64_t wide = blocks.back().kernels().widest;

  Tensor grad_u = at::empty({z.T, z.B, z.G}, at::kFloat);
  Tensor grad_history = at::empty({need_history ? z.K : 0, z.B, z.H}, at::kFloat);
  // The gradient of W_n h_{t-n}; with sum pooling it is the gradient of u for every n.
  Tensor grad_taps = at::empty({gated || max ? z.T : 0, z.B, z.K, z.H}, at::kFloat);
  // What flows back through the matrices from the steps s .. s + K, packed; step s in slot s mod K + 1.
  const int64_t sources = gated ? 2 * z.K : max ? z.K : 1;
  Tensor ring = buffer((z.K + 1) * sources * z.B * z.H);
  const int64_t matrix = packed_size(z.H, in_bf16), panel = z.K * matrix, matrices = z.panels * panel;
  Tensor packed = buffer((gated ? 2 : 1) * matrices);

  const float* grad_y_ = grad_y.const_data_ptr<float>();
  const float* grad_last_ = grad_last.const_data_ptr<float>();
  const float* y_ = states.const_data_ptr<float>() + z.K * z.B * z.H;
  const float* gates_ = gates.const_data_ptr<float>();
  const float* taps_ = taps.const_data_ptr<float>();
  const float* winners_ = winners.const_data_ptr<float>();
  float* grad_u_ = grad_u.mutable_data_ptr<float>();
  float* grad_taps_ = grad_taps.mutable_data_ptr<float>();
  float* grad_history_ = grad_history.mutable_data_ptr<float>();
  float* packed_ = packed.mutable_data_ptr<float>();
  float* ring_ = ring.mutable_data_ptr<float>();
  const auto slot = [&](int64_t s, int64_t source) {
    return ring_ + (s % (z.K + 1) * sources + source) * z.B * z.H;
  };

  Bounded carried(bound, z);
  Barrier barrier;
#pragma omp parallel num_threads(z.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    pack_weights(weight.const_data_ptr<float>(), false, z.K, z.H, z.H, panel, in_bf16, packed_, factors_of(factors));
    if (gated)
      pack_weights(gate_weight->const_data_ptr<float>(), false, z.K, z.H, z.H, panel, in_bf16, packed_ + matrices);

    float sum[TILE], part[TILE], part_gate[TILE];
    const auto multiply = [&](const Tile& tile, int64_t t, int64_t source, const float* right) {
      tile.block.kernels().product(tile.columns)(slot(t, source) + tile.block.start * z.H, right + tile.p * panel,
                                                 panel, z.H, sum);
    };
    for (int64_t s = z.T - 1; s >= (need_history ? -z.K : 0); --s) {
      const bool bounded = carried && s < z.T - 1;
      if (bounded) {
        for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
          std::fill_n(sum, tile.size(), 0.0f);
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
          const float* right = packed_ + (n - 1) * matrix;
          multiply(tile, s + n, gated ? 2 * n - 2 : max ? n - 1 : 0, right);
          if (gated) multiply(tile, s + n, 2 * n - 1, right + matrices);
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
  }
  ring.reset();  // their room is for what follows
  packed.reset();
  Tensor grad_weight = at::empty({need_weights ? z.K : 0, z.H, z.H}, at::kFloat);
  Tensor grad_gate_weight = at::empty({need_weights && gated ? z.K : 0, z.H, z.H}, at::kFloat);
  if (need_weights) {
    std::vector<WeightGradient> gradients;
    for (int64_t n = 1; n <= z.K; ++n) {
      const Tensor of_taps = gated || max ? grad_taps.select(2, n - 1) : grad_u;
      gradients.push_back({n, of_taps, grad_weight[n - 1], factors ? factors_of(factors)[n - 1] : 1.0f});
      if (gated) gradients.push_back({n, grad_u.narrow(2, n * z.H, z.H), grad_gate_weight[n - 1], 1.0f});
    }
    weight_gradients(gradients, states, z.K, in_bf16, z.team(threads));
  }
  return {grad_u, grad_history, grad_weight, grad_gate_weight};
}

}  // namespace
