// Normal noise on weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>

#include "update.h"
#include "vectors.h"

namespace {

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
