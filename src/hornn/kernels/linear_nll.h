// Scores of a linear layer and a softmax, whose logits are never written: each block of them is summed up in the cache.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "products.h"
#include "vectors.h"

namespace {

constexpr int64_t AT_ONCE = 16;        // panels of words, an even number
constexpr int64_t IN_CACHE = 1 << 16;  // floats of packed weights

// The largest of the numbers at x, x + stride, ... and the sum of their exponentials over the largest one's.
struct Summary {
  float most, sum;
};

template <class Read>
Summary summarize(int64_t count, const Read& read) {
  Vec high = splat(-std::numeric_limits<float>::infinity()), sum{};
  for (int64_t k = 0; k < count; ++k) {
    const Vec x = read(k);
    high = x > high ? x : high;
  }
  float most = std::numeric_limits<float>::lowest();  // where a bias excludes all of the words
  for (int l = 0; l < W; ++l) most = std::max(most, high[l]);
  for (int64_t k = 0; k < count; ++k) sum += exp_of_difference(read(k) - most);
  return {most, static_cast<float>(total(sum))};
}

// The weight (V, H) of a linear layer in panels of words, an even number of them: [panels][H][W].
Tensor pack_words(const Tensor& weight, int64_t threads) {
  const int64_t V = weight.size(0), H = weight.size(1), panels = (panels_of(V) + 1) / 2 * 2;
  Tensor packed = buffer(panels * H * W);
  const float* weight_ = weight.const_data_ptr<float>();
  float* packed_ = packed.mutable_data_ptr<float>();
#pragma omp parallel for num_threads(threads)
  for (int64_t p = 0; p < panels; ++p)
    pack_panel_transposed(weight_ + p * W * H, H, H, std::max<int64_t>(V - p * W, 0), false, packed_ + p * H * W);
  return packed;
}

// -ln softmax(weight h [+ bias])_target of each row of h (N, H), for a weight (V, H) that is packed: (N), in float64.
Tensor linear_nll(const Tensor& h, const Tensor& packed, int64_t V, const std::optional<Tensor>& bias,
                  const Tensor& targets, int64_t threads) {
  const int64_t N = h.size(0), H = h.size(1), panels = packed.numel() / (H * W);
  const int64_t group = std::clamp<int64_t>(IN_CACHE / (H * W) / 2 * 2, 2, AT_ONCE);
  const int64_t groups = (panels + group - 1) / group;
  const std::vector<Block> blocks = blocks_of(N);
  constexpr float infinity = std::numeric_limits<float>::infinity();

  Tensor nll = at::empty({N}, at::kDouble);
  Tensor left = buffer(N * H);
  std::vector<float> wanted(N), most(N * groups), sums(N * groups);
  const float* h_ = h.const_data_ptr<float>();
  const float* packed_ = packed.const_data_ptr<float>();
  const int64_t* targets_ = targets.const_data_ptr<int64_t>();
  float* left_ = left.mutable_data_ptr<float>();
  double* nll_ = nll.mutable_data_ptr<double>();

  std::vector<float> start(panels * W, -infinity);  // beyond the last word
  if (bias)
    std::copy_n(bias->const_data_ptr<float>(), V, start.begin());
  else
    std::fill_n(start.begin(), V, 0.0f);

#pragma omp parallel num_threads(threads)
  {
    pack_left(h_, blocks, H, left_);
    float logits[AT_ONCE * MAX_ROWS * W];
#pragma omp for
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = g * group, count = std::min(group, panels - first);
      for (const Block& block : blocks) {
        for (int64_t p = 0; p < count; p += 2) {
          float* tile = logits + p * block.rows * W;
          for (int r = 0; r < block.rows; ++r)
            std::copy_n(start.data() + (first + p) * W, 2 * W, tile + r * 2 * W);
          block.kernels().product(2)(left_ + block.start * H, packed_ + (first + p) * H * W, H * W, H, tile);
        }
        const auto place = [&](int r, int64_t p) { return p / 2 * 2 * block.rows * W + (r * 2 + p % 2) * W; };
        for (int r = 0; r < block.rows; ++r) {
          const int64_t row = block.start + r, target = targets_[row] - first * W;
          const Summary found = summarize(count, [&](int64_t p) { return load(logits + place(r, p)); });
          most[row * groups + g] = found.most;
          sums[row * groups + g] = found.sum;
          if (target >= 0 && target < count * W) wanted[row] = logits[place(r, target / W) + target % W];
        }
      }
    }
#pragma omp for
    for (int64_t row = 0; row < N; ++row) {
      const float* highs = most.data() + row * groups;
      const float highest = *std::max_element(highs, highs + groups);
      double sum = 0;
      for (int64_t g = 0; g < groups; g += W) {
        const Vec x = exp(load(highs + g, groups - g) - highest) * load(sums.data() + row * groups + g, groups - g);
        sum += total(__builtin_convertvector(x, Doubles));
      }
      nll_[row] = std::log(sum) + (static_cast<double>(highest) - wanted[row]);
    }
  }
  return nll;
}

}  // namespace
