// Packed factors and the products of their tiles, in fp32 or in bf16.
//
// In bf16 two neighbours along the depth, a pair, lie where one float lies in fp32: a packed factor takes no more than the
// same room, and both products of a pair are added up at once, in fp32. Where a depth is odd, a zero ends it; for the
// registers of AMX zeros fill it up.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "amx.h"
#include "formats.h"
#include "vectors.h"

namespace {

// So many floats, or pairs of bf16, lie along a depth.
inline int64_t units_of(int64_t depth, bool in_bf16) { return in_bf16 ? (depth + 1) / 2 : depth; }

// So many with the zeros behind them. They take no more room than `depth` floats.
inline int64_t filled_units_of(int64_t depth, bool in_bf16) {
  const int64_t units = units_of(depth, in_bf16);
#if defined(HORNN_AMX)
  if (in_bf16 && depth >= SIDE) return (units + SIDE - 1) / SIDE * SIDE;
#endif
  return units;
}

// How a sum in fp32 takes in a float, or a pair of numbers, of both factors.
struct Floats {
  static constexpr bool IN_BF16 = false;

  static Vec add(Vec sum, float a, Vec column) { return multiply_add(splat(a), column, sum); }
};

#if defined(__AVX512BF16__)
struct Pairs {
  static constexpr bool IN_BF16 = true;

  static Vec add(Vec sum, float a, Vec column) {
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_ps(a), (__m512bh)column);
  }

  // Neighbours in a vector as pairs, half a vector; the numbers of two vectors as pairs, a vector.
  static void join(Vec x, float* out) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), (__m256i)_mm512_cvtneps_pbh(x));
  }
  static void join(Vec first, Vec second, float* out) {
    const __m512i both = pairs((__m256i)_mm512_cvtneps_pbh(first), (__m256i)_mm512_cvtneps_pbh(second));
    _mm512_storeu_si512(out, both);
  }
};
#endif

// The left factor of a product is packed in blocks of R rows, [units][R], or for AMX [R][units]; the right one in panels
// of W columns, [units][W]. A tile is R rows of C vectors.
using Product = void (*)(const float* a, const float* b, int64_t panel, int64_t depth, float* tile);

// In how many parts a product of few rows sums: an addition waits for the one before it in its part. It depends on the
// rows alone, so that a sum is the same in a tile of any width.
constexpr int parts(int rows) { return rows > 3 ? 1 : std::min(rows == 1 ? 4 : 2, ACCUMULATORS / (4 * rows)); }

// sum[u][r][c] += a(r, k) b[c][k] over k, of which part u takes every U-th, beginning at u.
template <class Numbers, int U, int R, int C, class A>
inline void accumulate(Vec (&sum)[U][R][C], const A& a, const float* b, int64_t panel, int64_t units) {
  const auto add = [&](int u, int64_t k) {
    Vec column[C];
    for (int c = 0; c < C; ++c) {
      column[c] = load(b + c * panel + k * W);
      __builtin_prefetch(b + c * panel + (k + AHEAD) * W);
    }
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) sum[u][r][c] = Numbers::add(sum[u][r][c], a(r, k), column[c]);
  };
  int64_t k = 0;
  for (; k + U <= units; k += U)
    for (int u = 0; u < U; ++u) add(u, k + u);
  for (int u = 0; k < units; ++u, ++k) add(u, k);
  for (int u = 1; u < U; ++u)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) sum[0][r][c] += sum[u][r][c];
}

// tile += A B, for the C panels that start at b, b + panel, ...
template <class Numbers, int R, int C>
void product(const float* a, const float* b, int64_t panel, int64_t depth, float* tile) {
  Vec sum[parts(R)][R][C] = {};
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) sum[0][r][c] = load(tile + (r * C + c) * W);
  accumulate<Numbers>(sum, [&](int r, int64_t k) { return a[k * R + r]; }, b, panel, units_of(depth, Numbers::IN_BF16));
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) store(tile + (r * C + c) * W, sum[0][r][c]);
}

#if defined(HORNN_AMX)
// The same with AMX, whose registers have been set for R rows. A depth too small for it is multiplied row by row.
template <int R, int C>
void product_by_amx(const float* a, const float* b, int64_t panel, int64_t depth, float* tile) {
  const int64_t units = filled_units_of(depth, true);
  if (depth < SIDE) {
    for (int r = 0; r < R; ++r) {
      Vec sum[1][1][C];
      for (int c = 0; c < C; ++c) sum[0][0][c] = load(tile + (r * C + c) * W);
      accumulate<Pairs>(sum, [&](int, int64_t k) { return a[r * units + k]; }, b, panel, units);
      for (int c = 0; c < C; ++c) store(tile + (r * C + c) * W, sum[0][0][c]);
    }
    return;
  }
  const auto bytes = [](const float* x) { return reinterpret_cast<const char*>(x); };
  const Factors factors{bytes(a), units * UNIT, bytes(b), W * UNIT, panel * UNIT};
  if constexpr (R > SIDE)
    multiply_many<C, true>(factors, (R + 1) / 2, units, tile, C * W);
  else
    multiply_few<C>(factors, units, tile, C * W);
}
#endif

constexpr int MOST_APART = ACCUMULATORS / 4 < 4 ? ACCUMULATORS / 4 : 4;

// The same in fp32 for S rows that lie apart: the rows of `out`, `step` floats apart, are the rows a[0] .. a[S - 1]
// times B. Of at most M rows each is summed alike, however many there are.
template <int M, int S, int C>
void product_apart(const float* const* a, const float* b, int64_t panel, int64_t depth, float* out, int64_t step) {
  Vec sum[parts(M)][S][C] = {};
  accumulate<Floats>(sum, [&](int s, int64_t k) { return a[s][k]; }, b, panel, depth);
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

// Two ways into a packed left factor: its columns first to first + depth of `all`, so that column first + i of row r is
// x[r * ld + i], and all of it, column i of row r being x[i * ld + r]. `out` is where the block begins, `first` a multiple
// of W.
using PackRows = void (*)(const float* x, int64_t ld, int64_t first, int64_t depth, int64_t all, float* out);
using PackColumns = void (*)(const float* x, int64_t ld, int64_t depth, float* out);

template <class Numbers, int R>
void pack_rows(const float* x, int64_t ld, int64_t first, int64_t depth, int64_t, float* out) {
  out += units_of(first, Numbers::IN_BF16) * R;
  if constexpr (!Numbers::IN_BF16) {
    for (int64_t i = 0; i < depth; ++i)
      for (int r = 0; r < R; ++r) out[i * R + r] = x[r * ld + i];
  } else {
    for (int64_t k = 0; k < depth; k += W)
      for (int r = 0; r < R; ++r) {
        float row[W / 2];
        Numbers::join(load(x + r * ld + k, depth - k), row);
        for (int64_t i = 0; i < units_of(std::min<int64_t>(depth - k, W), true); ++i) out[(k / 2 + i) * R + r] = row[i];
      }
  }
}

#if defined(HORNN_AMX)
template <int R>
void pack_rows_for_amx(const float* x, int64_t ld, int64_t first, int64_t depth, int64_t all, float* out) {
  const int64_t row = filled_units_of(all, true), end = first + depth == all ? row : units_of(first + depth, true);
  for (int r = 0; r < R; ++r) {
    float* to = out + r * row;
    for (int64_t k = 0, u = first / 2; u < end; k += W, u += W / 2) {
      float pairs[W / 2];
      Pairs::join(k < depth ? load(x + r * ld + k, depth - k) : Vec{}, pairs);
      std::copy_n(pairs, std::min<int64_t>(end - u, W / 2), to + u);
    }
  }
}
#endif

template <int R>
void pack_columns(const float* x, int64_t ld, int64_t depth, float* out) {
  for (int64_t i = 0; i < depth; ++i)
    for (int r = 0; r < R; ++r) out[i * R + r] = x[i * ld + r];
}

constexpr int widest(int rows) { return 4 * rows <= ACCUMULATORS ? 4 : 2; }

// What there is for a number of rows: the products with 1, 2 or 4 panels, at most `widest`, and the packing; by columns
// in fp32 alone.
struct Kernels {
  int widest;
  Product products[3];
  PackRows pack_rows;
  PackColumns pack_columns;

  Product product(int64_t columns) const { return products[columns / 2]; }
};

template <class Numbers, int... R>
constexpr auto all_kernels(std::integer_sequence<int, R...>) {
  return std::array{
      Kernels{widest(R + 1),
              {product<Numbers, R + 1, 1>, product<Numbers, R + 1, 2>, product<Numbers, R + 1, widest(R + 1)>},
              pack_rows<Numbers, R + 1>,
              pack_columns<R + 1>}...};
}

constexpr auto IN_FP32 = all_kernels<Floats>(std::make_integer_sequence<int, MAX_ROWS>());
#if defined(HORNN_AMX)
constexpr int widest_in_bf16(int rows) { return rows <= SIDE ? 4 : 2; }

template <int... R>
constexpr auto all_kernels_of_amx(std::integer_sequence<int, R...>) {
  return std::array{Kernels{widest_in_bf16(R + 1),
                            {product_by_amx<R + 1, 1>, product_by_amx<R + 1, 2>,
                             product_by_amx<R + 1, widest_in_bf16(R + 1)>},
                            pack_rows_for_amx<R + 1>,
                            nullptr}...};
}

constexpr auto IN_BF16 = all_kernels_of_amx(std::make_integer_sequence<int, 2 * SIDE>());
#elif defined(__AVX512BF16__)
constexpr auto IN_BF16 = all_kernels<Pairs>(std::make_integer_sequence<int, MAX_ROWS>());
#else
constexpr auto& IN_BF16 = IN_FP32;  // never asked for: `has_bf16`
#endif

// Rows [start, start + rows).
struct Block {
  int64_t start;
  int rows;
  bool in_bf16;

  const Kernels& kernels() const { return in_bf16 ? IN_BF16[rows - 1] : IN_FP32[rows - 1]; }

  // To be called by each thread before products of blocks like this one, and after the last of them.
  void start_products() const {
#if defined(HORNN_AMX)
    if (in_bf16) set_registers(rows);
#endif
  }
  void end_products() const {
#if defined(HORNN_AMX)
    if (in_bf16) free_registers();
#endif
  }
};

constexpr int MOST_ROWS = std::max<int>(IN_FP32.size(), IN_BF16.size());  // of a block
constexpr int TILE = std::max(ACCUMULATORS, 2 * MOST_ROWS) * W;           // floats of a tile at most

// `count` rows in blocks as large and as even as can be.
inline std::vector<Block> blocks_of(int64_t count, bool in_bf16 = false) {
  if (in_bf16) require_amx();
  const int64_t most = in_bf16 ? IN_BF16.size() : IN_FP32.size(), number = (count + most - 1) / most;
  std::vector<Block> blocks;
  for (int64_t i = 0; i < number; ++i) {
    const int64_t start = count * i / number;
    blocks.push_back({start, static_cast<int>(count * (i + 1) / number - start), in_bf16});
  }
  return blocks;
}

inline int64_t panels_of(int64_t columns) { return (columns + W - 1) / W; }

// The zeros behind a panel of bf16.
inline void fill_units(int64_t depth, float* out) {
  for (int64_t u = units_of(depth, true); u < filled_units_of(depth, true); ++u) store(out + u * W, Vec{});
}

// A panel of the right factor `times` x[k * ld + j]; columns from `columns` on are zeros.
inline void pack_panel(const float* x, int64_t ld, int64_t depth, int64_t columns, bool in_bf16, float* out,
                       float times = 1.0f) {
#if defined(__AVX512BF16__)
  for (int64_t k = 0; in_bf16 && k < depth; k += 2) {
    const Vec second = k + 1 < depth ? times * load(x + (k + 1) * ld, columns) : Vec{};
    Pairs::join(times * load(x + k * ld, columns), second, out + k / 2 * W);
  }
#endif
  if (in_bf16) fill_units(depth, out);
  for (int64_t k = 0; !in_bf16 && k < depth; ++k) store(out + k * W, times * load(x + k * ld, columns));
}

// A panel of the right factor `times` x[j * ld + k]; columns from `columns` on are zeros.
inline void pack_panel_transposed(const float* x, int64_t ld, int64_t depth, int64_t columns, bool in_bf16, float* out,
                                  float times = 1.0f) {
  float square[W][W] = {};
  for (int64_t k = 0; k < depth; k += W) {
    const int64_t units = units_of(std::min<int64_t>(depth - k, W), in_bf16);
    for (int64_t j = 0; j < std::min<int64_t>(columns, W); ++j) {
      const Vec x_j = times * load(x + j * ld + k, depth - k);
#if defined(__AVX512BF16__)
      if (in_bf16) {
        Pairs::join(x_j, square[j]);
        continue;
      }
#endif
      store(square[j], x_j);
    }
    for (int64_t i = 0; i < units; ++i)
      for (int64_t j = 0; j < W; ++j) out[(units_of(k, in_bf16) + i) * W + j] = square[j][i];
  }
  if (in_bf16) fill_units(depth, out);
}

}  // namespace
