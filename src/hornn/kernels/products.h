// Products of matrices, one step of a scan at a time: packed factors, tiles, and the threads that share them out.
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

#include "vectors.h"

namespace {

using at::Tensor;

// The left factor of a product is packed in blocks of R rows, [depth][R]; the right one in panels of W columns,
// [depth][W]. A tile is R rows of C vectors.
using Product = void (*)(const float* a, const float* b, int64_t panel, int64_t depth, float* tile);

// In how many parts a product of few rows sums: an addition waits for the one before it in its part. It depends on the
// rows alone, so that a sum is the same in a tile of any width.
constexpr int parts(int rows) { return rows > 3 ? 1 : std::min(rows == 1 ? 4 : 2, ACCUMULATORS / (4 * rows)); }

// sum[u][r][c] += a(r, k) b[c][k] over k, of which part u takes every U-th, beginning at u.
template <int U, int R, int C, class A>
inline void accumulate(Vec (&sum)[U][R][C], const A& a, const float* b, int64_t panel, int64_t depth) {
  const auto add = [&](int u, int64_t k) {
    Vec column[C];
    for (int c = 0; c < C; ++c) {
      column[c] = load(b + c * panel + k * W);
      __builtin_prefetch(b + c * panel + (k + AHEAD) * W);
    }
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) sum[u][r][c] += a(r, k) * column[c];
  };
  int64_t k = 0;
  for (; k + U <= depth; k += U)
    for (int u = 0; u < U; ++u) add(u, k + u);
  for (int u = 0; k < depth; ++u, ++k) add(u, k);
  for (int u = 1; u < U; ++u)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) sum[0][r][c] += sum[u][r][c];
}

// tile += A B, for the C panels that start at b, b + panel, ...
template <int R, int C>
void product(const float* a, const float* b, int64_t panel, int64_t depth, float* tile) {
  Vec sum[parts(R)][R][C] = {};
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) sum[0][r][c] = load(tile + (r * C + c) * W);
  accumulate(sum, [&](int r, int64_t k) { return a[k * R + r]; }, b, panel, depth);
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) store(tile + (r * C + c) * W, sum[0][r][c]);
}

constexpr int MOST_APART = ACCUMULATORS / 4 < 4 ? ACCUMULATORS / 4 : 4;

// The same for S rows that lie apart: the rows of `out`, `step` floats apart, are the rows a[0] .. a[S - 1] times B. Of
// at most M rows each is summed alike, however many there are.
template <int M, int S, int C>
void product_apart(const float* const* a, const float* b, int64_t panel, int64_t depth, float* out, int64_t step) {
  Vec sum[parts(M)][S][C] = {};
  accumulate(sum, [&](int s, int64_t k) { return a[s][k]; }, b, panel, depth);
  for (int s = 0; s < S; ++s)
    for (int c = 0; c < C; ++c) store(out + s * step + c * W, sum[0][s][c]);
}

using ProductApart = void (*)(const float* const* a, const float* b, int64_t panel, int64_t depth, float* out,
                              int64_t step);
using ProductsApart = std::array<std::array<ProductApart, 3>, MOST_APART>;  // [rows - 1][panels / 2]

template <int M, int... S>
constexpr ProductsApart up_to(std::integer_sequence<int, S...>) {
  return {std::array<ProductApart, 3>{product_apart<M, S + 1, 1>, product_apart<M, S + 1, 2>,
                                      product_apart<M, S + 1, 4>}...};
}

template <int... M>
constexpr auto all_apart(std::integer_sequence<int, M...> all) {
  return std::array{up_to<M + 1>(all)...};
}

constexpr auto PRODUCTS_APART = all_apart(std::make_integer_sequence<int, MOST_APART>());  // [most rows - 1]

// Two ways into a packed left factor: out[i][r] = x[r * ld + i], and out[i][r] = x[i * ld + r].
using Pack = void (*)(const float* x, int64_t ld, int64_t depth, float* out);

template <int R>
void pack_rows(const float* x, int64_t ld, int64_t depth, float* out) {
  for (int64_t i = 0; i < depth; ++i)
    for (int r = 0; r < R; ++r) out[i * R + r] = x[r * ld + i];
}

template <int R>
void pack_columns(const float* x, int64_t ld, int64_t depth, float* out) {
  for (int64_t i = 0; i < depth; ++i)
    for (int r = 0; r < R; ++r) out[i * R + r] = x[i * ld + r];
}

constexpr int widest(int rows) { return 4 * rows <= ACCUMULATORS ? 4 : 2; }

// What there is for a number of rows: the products with 1, 2 or 4 panels, and the packing.
struct Kernels {
  Product products[3];
  Pack pack_rows, pack_columns;

  Product product(int64_t columns) const { return products[columns / 2]; }
};

template <int... R>
constexpr auto all_kernels(std::integer_sequence<int, R...>) {
  return std::array{Kernels{{product<R + 1, 1>, product<R + 1, 2>, product<R + 1, widest(R + 1)>},
                            pack_rows<R + 1>,
                            pack_columns<R + 1>}...};
}

constexpr auto KERNELS = all_kernels(std::make_integer_sequence<int, MAX_ROWS>());

// Rows [start, start + rows).
struct Block {
  int64_t start;
  int rows;

  const Kernels& kernels() const { return KERNELS[rows - 1]; }
};

// `count` rows in blocks of at most MAX_ROWS, as even as can be.
inline std::vector<Block> blocks_of(int64_t count) {
  const int64_t number = (count + MAX_ROWS - 1) / MAX_ROWS;
  std::vector<Block> blocks;
  for (int64_t i = 0; i < number; ++i) {
    const int64_t start = count * i / number;
    blocks.push_back({start, static_cast<int>(count * (i + 1) / number - start)});
  }
  return blocks;
}

inline int64_t panels_of(int64_t columns) { return (columns + W - 1) / W; }

// A panel of the right factor x[k * ld + j]; columns from `columns` on are zeros.
inline void pack_panel(const float* x, int64_t ld, int64_t depth, int64_t columns, float* out) {
  for (int64_t k = 0; k < depth; ++k) store(out + k * W, load(x + k * ld, columns));
}

// A panel of the right factor x[j * ld + k]; columns from `columns` on are zeros.
inline void pack_panel_transposed(const float* x, int64_t ld, int64_t depth, int64_t columns, float* out) {
  float square[W][W] = {};
  for (int64_t k = 0; k < depth; k += W) {
    for (int64_t j = 0; j < std::min<int64_t>(columns, W); ++j) store(square[j], load(x + j * ld + k, depth - k));
    for (int64_t i = 0; i < std::min<int64_t>(depth - k, W); ++i)
      for (int64_t j = 0; j < W; ++j) *out++ = square[j][i];
  }
}

// A matrix (rows, depth) as a packed left factor. By all threads of a team.
inline void pack_left(const float* x, const std::vector<Block>& blocks, int64_t depth, float* out) {
#pragma omp for
  for (size_t i = 0; i < blocks.size(); ++i)
    blocks[i].kernels().pack_rows(x + blocks[i].start * depth, depth, depth, out + blocks[i].start * depth);
}

inline Tensor buffer(int64_t size) { return at::empty({size}, at::kFloat); }

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

// Panels of K matrices, each (columns, depth) where `transposed`, or else (depth, columns): [panels][K][depth][W],
// `stride` floats from a panel to the next.
inline void pack_weights(const float* weight, bool transposed, int64_t K, int64_t depth, int64_t columns,
                         int64_t stride, float* out) {
#pragma omp for collapse(2)
  for (int64_t p = 0; p < panels_of(columns); ++p)
    for (int64_t n = 0; n < K; ++n) {
      const float* matrix = weight + n * depth * columns;
      float* packed = out + p * stride + n * depth * W;
      if (transposed)
        pack_panel_transposed(matrix + p * W * depth, depth, depth, columns - p * W, packed);
      else
        pack_panel(matrix + p * W, columns, depth, columns - p * W, packed);
    }
}

// A part of a step: the rows of a block by `columns` panels from p on, as a tile of `width` floats a row.
struct Tile {
  Block block;
  int64_t p, columns, width, H;

  // Call work(offset in the tile, row, column, floats up to the row's end) for each vector.
  template <class F>
  void each(F work) const {
    for (int r = 0; r < block.rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        work(r * width + c * W, block.start + r, (p + c) * W, H - (p + c) * W);
  }

  // The tile's place in a packed (B, H) left factor gets its contents.
  void pack(const float* tile, float* factor) const {
    block.kernels().pack_rows(tile, width, std::min(width, H - p * W), factor + block.start * H + p * W * block.rows);
  }
};

// Call work(tile) for each tile of a step that is this thread's: its share of the panels, which differs by one from
// block to block where the panels do not come out even.
template <class F>
void for_tiles(const Sizes& z, const std::vector<Block>& blocks, int64_t wide, int team, int me, F work) {
  for (int64_t p = 0; p < z.panels; p += wide)
    for (size_t i = 0; i < blocks.size(); ++i) {
      const int64_t odd = i % team;
      const int64_t end = std::min(p + wide, (z.panels * (me + 1) + odd) / team);
      int64_t columns = wide;
      for (int64_t q = std::max(p, (z.panels * me + odd) / team); q < end; q += columns) {
        while (columns > end - q) columns /= 2;
        work(Tile{blocks[i], q, columns, columns * W, z.H});
      }
    }
}

// A right factor that stays: the panels of a weight (rows, depth), transposed, or of a weight (depth, columns).
class Matrix {
 public:
  Matrix(const Tensor& weight, bool transposed)
      : transposed(transposed), columns(weight.size(transposed ? 0 : 1)), depth(weight.size(transposed ? 1 : 0)),
        weight(weight.const_data_ptr<float>()), packed(buffer(panels_of(columns) * depth * W)),
        packed_(packed.mutable_data_ptr<float>()) {}

  // By all threads of a team.
  void pack() const { pack_weights(weight, transposed, 1, depth, columns, depth * W, packed_); }

  // sum += this tile of a packed left factor (B, depth) times the matrix.
  void multiply(const Tile& tile, const float* left, float* sum) const {
    tile.block.kernels().product(tile.columns)(left + tile.block.start * depth, packed_ + tile.p * depth * W,
                                               depth * W, depth, sum);
  }

 private:
  bool transposed;
  int64_t columns, depth;
  const float* weight;
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
