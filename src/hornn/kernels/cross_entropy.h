// Softmax and cross entropy of rows of logits; the transpose of a matrix in bf16.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "products.h"
#include "vectors.h"

namespace {

// Logits (N, V) as tiles that lie one after the other in memory or apart: tile k has the next widths[k] words of all
// rows, row by row. All widths but the last are whole vectors.
template <class Element>
struct Tiles {
  std::vector<Element*> tiles;
  std::vector<int64_t> widths;

  explicit Tiles(at::TensorList logits) {
    for (const Tensor& tile : logits) {
      tiles.push_back(static_cast<Element*>(tile.data_ptr()));
      widths.push_back(tile.size(1));
    }
  }

  // Call work(where the numbers of a row lie, which word is the first of them, how many there are) for each tile.
  template <class F>
  void each(int64_t row, F work) const {
    for (size_t k = 0, first = 0; k < tiles.size(); first += widths[k++])
      work(tiles[k] + row * widths[k], first, widths[k]);
  }
};

// One row of logits: its negative log-likelihood in nats; with `overwrite` the row becomes (softmax - one-hot) times
// `scale`, which is also added to `bias_sum` where there is a bias. `x` is room for V floats rounded up to whole
// vectors.
template <class Element>
double cross_entropy_row(const Tiles<Element>& logits, int64_t row, const float* bias, int64_t target, int64_t V,
                         bool overwrite, float scale, float* bias_sum, float* x) {
  const int64_t padded = panels_of(V) * W;
  Vec most = splat(-std::numeric_limits<float>::infinity());
  logits.each(row, [&](const Element* tile, int64_t first, int64_t width) {
    const auto take = [&](int64_t i, Vec v) {
      store(x + first + i, v);
      most = v > most ? v : most;
    };
    const int64_t whole = width / W * W, rest = width - whole;
    for (int64_t i = 0; i < whole; i += W) take(i, bias ? read(tile + i) + load(bias + first + i) : read(tile + i));
    if (rest) {
      Vec v = read(tile + whole, rest);
      if (bias) v += load(bias + first + whole, rest);
      for (int64_t l = rest; l < W; ++l) v[l] = -std::numeric_limits<float>::infinity();
      take(whole, v);
    }
  });
  float largest = most[0];
  for (int l = 1; l < W; ++l) largest = std::max(largest, most[l]);
  const float wanted = x[target];

  double sum = 0;
  for (int64_t start = 0; start < padded; start += 256 * W) {  // few enough terms for fp32
    Vec partial{};
    for (int64_t i = start; i < std::min(start + 256 * W, padded); i += W) {
      const Vec difference = load(x + i) - largest;
      const Vec e = std::is_same_v<Element, float> ? exp(difference) : exp_of_difference(difference);
      store(x + i, e);
      partial += e;
    }
    sum += total(partial);
  }
  if (overwrite) {
    const float share = static_cast<float>(scale / sum);
    for (int64_t i = 0; i < padded; i += W) store(x + i, load(x + i) * share);
    x[target] -= scale;
    logits.each(row, [&](Element* tile, int64_t first, int64_t width) {
      const int64_t whole = width / W * W;
      for (int64_t i = 0; i < whole; i += W) write(tile + i, load(x + first + i));
      if (whole < width) write(tile + whole, load(x + first + whole), width - whole);
    });
    for (int64_t i = 0; bias && i < V; i += W) store(bias_sum + i, load(bias_sum + i, V - i) + load(x + i), V - i);
  }
  return std::log(sum) + (static_cast<double>(largest) - wanted);
}

template <class Element>
void cross_entropy_rows(const Tiles<Element>& logits, const float* bias, const int64_t* targets, int64_t N, int64_t V,
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
        if (targets[i] >= 0) {
          nll[i] = cross_entropy_row(logits, i, bias, targets[i], V, overwrite, scale, bias_sums[k].data(), x.data());
        } else {
          nll[i] = 0;
          if (overwrite) logits.each(i, [](Element* tile, int64_t, int64_t width) { std::fill_n(tile, width, Element{}); });
        }
      }
    }
  }
  for (const std::vector<float>& bias_sum : bias_sums)
    for (size_t j = 0; j < bias_sum.size(); ++j) grad_bias[j] += bias_sum[j];
}

std::tuple<Tensor, Tensor> cross_entropy(at::TensorList logits, const std::optional<Tensor>& bias,
                                         const Tensor& targets, bool overwrite, double scale, int64_t threads) {
  int64_t V = 0;
  for (const Tensor& tile : logits) V += tile.size(1);
  const int64_t N = targets.size(0);
  Tensor nll = at::empty({N}, at::kDouble);
  Tensor grad_bias = at::zeros({bias && overwrite ? V : 0}, at::kFloat);
  const auto run = [&](const auto& tiles) {
    cross_entropy_rows(tiles, bias ? bias->const_data_ptr<float>() : nullptr, targets.const_data_ptr<int64_t>(), N, V,
                       overwrite, scale, threads, nll.mutable_data_ptr<double>(), grad_bias.mutable_data_ptr<float>());
  };
  if (logits[0].scalar_type() == at::kFloat)
    run(Tiles<float>(logits));
  else if (logits[0].scalar_type() == at::kBFloat16)
    run(Tiles<uint16_t>(logits));
#if defined(__AVX512FP16__)
  else
    run(Tiles<Half>(logits));
#endif
  return {nll, grad_bias};
}

// Whether another tensor lies in the same memory.
bool is_shared(const Tensor& x) { return x.storage().use_count() > 1; }

typedef uint16_t Eight __attribute__((vector_size(16)));

// The lower and the upper halves of a and b, their numbers in turn.
#if defined(__clang__)
inline Eight lower(Eight a, Eight b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Eight upper(Eight a, Eight b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
#else
inline Eight lower(Eight a, Eight b) { return __builtin_shuffle(a, b, Eight{0, 8, 1, 9, 2, 10, 3, 11}); }
inline Eight upper(Eight a, Eight b) { return __builtin_shuffle(a, b, Eight{4, 12, 5, 13, 6, 14, 7, 15}); }
#endif
#if defined(__AVX512F__)
typedef uint32_t Sixteen __attribute__((vector_size(64)));

inline Sixteen lower(Sixteen a, Sixteen b) {
  const __m512i turns = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return (Sixteen)_mm512_permutex2var_epi32((__m512i)a, turns, (__m512i)b);
}
inline Sixteen upper(Sixteen a, Sixteen b) {
  const __m512i turns = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return (Sixteen)_mm512_permutex2var_epi32((__m512i)a, turns, (__m512i)b);
}
#endif

// Vectors as the rows of a square, which become its columns.
template <class Vector, size_t side>
void transpose_square(Vector (&square)[side]) {
  Vector next[side];
  // Row k in turn with row k + side / 2: after log2(side) rounds columns are rows.
  for (size_t round = 1; round < side; round *= 2) {
    for (size_t k = 0; k < side / 2; ++k) {
      next[2 * k] = lower(square[k], square[k + side / 2]);
      next[2 * k + 1] = upper(square[k], square[k + side / 2]);
    }
    std::copy(next, next + side, square);
  }
}

// out (columns, rows) = x (rows, columns), of numbers of 16 bits; the rows of x lie `stride` numbers apart.
void transpose_numbers(const void* x, int64_t rows, int64_t columns, int64_t stride, void* out, int64_t threads) {
  constexpr int64_t size = 2, side = sizeof(Eight) / size;
  constexpr int64_t tall = 64 / size;  // rows at a time: a cache line of the result
  const auto from = [&](int64_t i, int64_t j) { return static_cast<const char*>(x) + (i * stride + j) * size; };
  const auto to = [&](int64_t j, int64_t i) { return static_cast<char*>(out) + (j * rows + i) * size; };
#pragma omp parallel for num_threads(threads)
  for (int64_t first = 0; first < rows; first += tall)
    for (int64_t j = 0; j < columns; j += side)
      for (int64_t i = first; i < std::min(first + tall, rows); i += side) {
        if (i + side > rows || j + side > columns) {
          for (int64_t k = i; k < std::min(i + side, rows); ++k)
            for (int64_t l = j; l < std::min(j + side, columns); ++l) std::memcpy(to(l, k), from(k, l), size);
          continue;
        }
        Eight square[side];
        for (int64_t k = 0; k < side; ++k) std::memcpy(&square[k], from(i + k, j), sizeof(Eight));
        transpose_square(square);
        for (int64_t l = 0; l < side; ++l) std::memcpy(to(j + l, i), &square[l], sizeof(Eight));
      }
}

Tensor transpose(const Tensor& x, int64_t threads) {
  Tensor out = at::empty({x.size(1), x.size(0)}, x.options());
  transpose_numbers(x.const_data_ptr(), x.size(0), x.size(1), x.size(1), out.mutable_data_ptr(), threads);
  return out;
}

}  // namespace
