// Products of matrices, one step of a scan at a time: weights, tiles, and the threads that share them out.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "factors.h"
#include "vectors.h"

namespace {

using at::Tensor;

// A matrix (rows, depth) as a packed left factor. By all threads of a team.
inline void pack_left(const float* x, const std::vector<Block>& blocks, int64_t depth, float* out) {
#pragma omp for
  for (size_t i = 0; i < blocks.size(); ++i)
    blocks[i].kernels().pack_rows(x + blocks[i].start * depth, depth, 0, depth, depth, out + blocks[i].start * depth);
}

inline Tensor buffer(int64_t size) { return at::empty({size}, at::kFloat); }

// Floats of a packed panel of a right factor.
inline int64_t packed_size(int64_t depth, bool in_bf16) { return filled_units_of(depth, in_bf16) * W; }

// Where the threads of a team wait for each other. Cheaper than OpenMP's own, which may put them to sleep.
class Barrier {
 public:
  void wait(int team) {
    if (team == 1) return;
    const int now = phase.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == team) {
      arrived.store(0, std::memory_order_relaxed);
      phase.store(now + 1, std::memory_order_release);
      return;
    }
    for (int turns = 0; phase.load(std::memory_order_acquire) == now; ++turns)
      if (turns > 1000) sched_yield();  // more threads than processors: let the others get there
  }

 private:
  alignas(64) std::atomic<int> arrived{0};
  alignas(64) std::atomic<int> phase{0};
};

struct Sizes {
  int64_t T, B, H, K, G, panels;

  // One state; the products of a step are with one square matrix.
  Sizes(int64_t steps, int64_t columns, int64_t hidden)
      : T(steps), B(columns), H(hidden), K(1), G(hidden), panels(panels_of(hidden)) {}

  Sizes(int64_t steps, const Tensor& history, bool gated)
      : T(steps), B(history.size(1)), H(history.size(2)), K(history.size(0)), G(gated ? (1 + K) * H : H),
        panels(panels_of(H)) {}

  // One state (B, H), on which as many square matrices act as there are gates.
  static Sizes of_gates(int64_t steps, const Tensor& h, int64_t gates) {
    Sizes z(steps, h.size(0), h.size(1));
    z.K = gates;
    z.G = gates * z.H;
    return z;
  }

  // A step of less than about a microsecond is not worth a second thread.
  int team(int64_t threads) const { return K * B * H * H < 100000 ? 1 : std::min<int64_t>(threads, panels); }
};

// Panels of K matrices, each (columns, depth) where `transposed`, or else (depth, columns): [panels][K][packed_size],
// `stride` floats from a panel to the next; the n-th matrix times the n-th of `factors`, where there are any.
inline void pack_weights(const float* weight, bool transposed, int64_t K, int64_t depth, int64_t columns,
                         int64_t stride, bool in_bf16, float* out, const float* factors = nullptr) {
#pragma omp for collapse(2)
  for (int64_t p = 0; p < panels_of(columns); ++p)
    for (int64_t n = 0; n < K; ++n) {
      const float* matrix = weight + n * depth * columns;
      float* packed = out + p * stride + n * packed_size(depth, in_bf16);
      const float times = factors ? factors[n] : 1.0f;
      if (transposed)
        pack_panel_transposed(matrix + p * W * depth, depth, depth, columns - p * W, in_bf16, packed, times);
      else
        pack_panel(matrix + p * W, columns, depth, columns - p * W, in_bf16, packed, times);
    }
}

// A part of a step: the rows of a block by `columns` panels from p on, as a tile of `width` floats a row.
struct Tile {
  Block block;
  int64_t p, columns, width, H;

  int64_t size() const { return block.rows * width; }

  // Call work(offset in the tile, row, column, floats up to the row's end) for each vector.
  template <class F>
  void each(F work) const {
    for (int r = 0; r < block.rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        work(r * width + c * W, block.start + r, (p + c) * W, H - (p + c) * W);
  }

  // The tile's place in a packed (B, H) left factor gets its contents.
  void pack(const float* tile, float* factor) const {
    block.kernels().pack_rows(tile, width, p * W, std::min(width, H - p * W), H, factor + block.start * H);
  }
};

// Call work(tile) for each tile of a step that is this thread's: its share of the panels, which differs by one from
// block to block where the panels do not come out even.
template <class F>
void for_tiles(const Sizes& z, const std::vector<Block>& blocks, int64_t wide, int team, int me, F work) {
  int started = 0;  // for so many rows
  for (int64_t p = 0; p < z.panels; p += wide)
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].rows != started) blocks[i].start_products();
      started = blocks[i].rows;
      const int64_t odd = i % team;
      const int64_t end = std::min(p + wide, (z.panels * (me + 1) + odd) / team);
      int64_t columns = wide;
      for (int64_t q = std::max(p, (z.panels * me + odd) / team); q < end; q += columns) {
        while (columns > end - q) columns /= 2;
        work(Tile{blocks[i], q, columns, columns * W, z.H});
      }
    }
  blocks[0].end_products();
}

// A right factor that stays: the panels of a weight (rows, depth), transposed, or of a weight (depth, columns).
class Matrix {
 public:
  Matrix(const Tensor& weight, bool transposed, bool in_bf16)
      : transposed(transposed), in_bf16(in_bf16), columns(weight.size(transposed ? 0 : 1)),
        depth(weight.size(transposed ? 1 : 0)),
        weight(weight.const_data_ptr<float>()), panel(packed_size(depth, in_bf16)),
        packed(buffer(panels_of(columns) * panel)), packed_(packed.mutable_data_ptr<float>()) {}

  // By all threads of a team.
  void pack() const { pack_weights(weight, transposed, 1, depth, columns, panel, in_bf16, packed_); }

  // sum += this tile of a packed left factor (B, depth) times the matrix.
  void multiply(const Tile& tile, const float* left, float* sum) const {
    tile.block.kernels().product(tile.columns)(left + tile.block.start * depth, packed_ + tile.p * panel, panel, depth,
                                               sum);
  }

 private:
  bool transposed, in_bf16;
  int64_t columns, depth;
  const float* weight;
  int64_t panel;
  Tensor packed;
  float* packed_;
};

template <class Numbers>
double total(Numbers x) {
  double sum = 0;
  for (int l = 0; l < W; ++l) sum += x[l];
  return sum;
}

// The gradient (B, H) that flows back into a state from the step after it, scaled to a Euclidean norm of at most
// `bound`. All of it has to be put before any of it is taken.
class Bounded {
 public:
  Bounded(std::optional<double> bound, const Sizes& z)
      : bound(bound), H(z.H), panels(z.panels), values(bound ? z.B * z.H : 0), squares(bound ? z.B * z.panels : 0) {}

  explicit operator bool() const { return bound.has_value(); }

  void put(int64_t b, int64_t j, Vec x, int64_t lanes) {
    const Doubles wide = __builtin_convertvector(x, Doubles);
    store(&values[b * H + j], x, lanes);
    squares[b * panels + j / W] = total(wide * wide);
  }

  Vec take(int64_t b, int64_t j, int64_t lanes, float factor) const { return factor * load(&values[b * H + j], lanes); }

  // What `take` has to scale by.
  float factor() const {
    double sum = 0;
    for (const double square : squares) sum += square;
    return sum > *bound * *bound ? *bound / std::sqrt(sum) : 1.0;
  }

 private:
  const std::optional<double> bound;
  const int64_t H, panels;
  std::vector<float> values;
  std::vector<double> squares;
};

}  // namespace
