// The scan of slow linear units.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <optional>
#include <tuple>

#include "products.h"
#include "vectors.h"

namespace {

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

}  // namespace
