// The gradient's norm and the update of weights by momentum descent.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "vectors.h"

namespace {

using at::Tensor;

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

// Of an update: `keep` is what decay leaves of a weight, `factor` scales a gradient before it is bounded.
struct Constants {
  float rate, mu, keep, bound, factor;
  double max_norm;

  Constants(double lr, double mu, double decay, double clip, double scale, double max_norm)
      : rate(lr), mu(mu), keep(1 - lr * decay), bound(clip), factor(scale), max_norm(max_norm) {}
};

// The step of descent for `size` floats of a weight; `grad` and `velocity` are null where they are zero, `copy` where no
// copy in bf16 is wanted. Returns the sums of squares of the new weights where there is a `max_norm`.
template <class Element>
Doubles descend(const Constants& z, float* weight, float* velocity, const Element* grad, uint16_t* copy, int64_t size) {
  Doubles squares{};
  for (int64_t i = 0; i < size; i += W) {
    Vec g = grad ? z.factor * read(grad + i, size - i) : Vec{};
    g = g < -z.bound ? splat(-z.bound) : g;
    g = g > z.bound ? splat(z.bound) : g;
    Vec m = -z.rate * g;
    if (velocity) {
      m += z.mu * load(velocity + i, size - i);
      store(velocity + i, m, size - i);
    }
    const Vec w = z.keep * load(weight + i, size - i) + m;
    store(weight + i, w, size - i);
    if (copy) write(copy + i, w, size - i);
    if (z.max_norm > 0) {
      const Doubles wide = __builtin_convertvector(w, Doubles);
      squares += wide * wide;
    }
  }
  return squares;
}

inline float* numbers(const Tensor& x) { return x.numel() ? x.mutable_data_ptr<float>() : nullptr; }

// One weight.
template <class Element>
void update(const Constants& z, const Tensor& param, const Tensor& momentum, const Element* grad, uint16_t* copy,
            int64_t threads) {
  float *weight = numbers(param), *velocity = numbers(momentum);
  const int64_t size = param.numel();
  const bool bounded = z.max_norm > 0 && param.dim() > 1 && size > 0;
  const int64_t length = bounded ? param.size(-1) : BLOCK;
  const int64_t rows = (size + length - 1) / length;
#pragma omp parallel for num_threads(threads) if (size > 8 * BLOCK)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t start = row * length, end = std::min(size, start + length);
    const Doubles squares = descend(z, weight + start, velocity ? velocity + start : nullptr,
                                    grad ? grad + start : nullptr, copy ? copy + start : nullptr, end - start);
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

// One weight (V, H) whose gradient is zero but in these rows, which ascend.
void momentum_update_rows(const Tensor& param, const Tensor& momentum, const Tensor& rows, const Tensor& grad,
                          double lr, double mu, double decay, double clip, double scale, int64_t threads) {
  const Constants z(lr, mu, decay, clip, scale, 0.0);
  float *weight = numbers(param), *velocity = numbers(momentum);
  const float* g = grad.const_data_ptr<float>();
  const int64_t *first = rows.const_data_ptr<int64_t>(), *last = first + rows.numel();
  const int64_t V = param.size(0), H = param.size(1);
  if (!H) return;
  const auto step = [&](int64_t row, const float* grad) {
    descend(z, weight + row * H, velocity ? velocity + row * H : nullptr, grad, nullptr, H);
  };
  if (!velocity && z.keep == 1.0f) {  // then the other rows stay
#pragma omp parallel for num_threads(threads) if (rows.numel() * H > 8 * BLOCK)
    for (int64_t i = 0; i < rows.numel(); ++i) step(first[i], g + i * H);
    return;
  }
  const int64_t share = std::max<int64_t>(1, BLOCK / H);  // rows that a thread takes at a time
#pragma omp parallel for num_threads(threads) if (V * H > 8 * BLOCK)
  for (int64_t start = 0; start < V; start += share) {
    const int64_t* next = std::lower_bound(first, last, start);
    for (int64_t row = start; row < std::min(V, start + share); ++row) {
      const bool has_gradient = next < last && *next == row;
      step(row, has_gradient ? g + (next - first) * H : nullptr);
      next += has_gradient;
    }
  }
}

void momentum_update(at::TensorList params, at::TensorList momenta, at::TensorList grads, at::TensorList copies,
                     double lr, double momentum, double decay, double clip, double scale, double max_norm,
                     int64_t threads) {
  const Constants z(lr, momentum, decay, clip, scale, max_norm);
  for (size_t k = 0; k < params.size(); ++k) {
    uint16_t* copy = copies[k].numel() ? static_cast<uint16_t*>(copies[k].mutable_data_ptr()) : nullptr;
    const bool zero = !grads[k].numel();
    with_elements(grads[k], [&](const auto* g) {
      update(z, params[k], momenta[k], zero ? nullptr : g, copy, threads);
    });
  }
}

}  // namespace
