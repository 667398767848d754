// Vectors of floats, as wide as the registers of the machine that compiles: the vector types of GCC and clang.
#pragma once

#include <c10/util/string_view.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

using at::Tensor;

#if defined(__AVX512F__)
constexpr int W = 16;             // floats in a vector
constexpr int ACCUMULATORS = 24;  // vector registers that hold sums
#elif defined(__AVX__)
constexpr int W = 8;
constexpr int ACCUMULATORS = 12;
#else
constexpr int W = 4;
constexpr int ACCUMULATORS = 12;
#endif
constexpr int MAX_ROWS = ACCUMULATORS / 2;  // of a tile two vectors wide
constexpr int AHEAD = 32;  // vectors between what is read and what is fetched from memory

typedef float Vec __attribute__((vector_size(4 * W)));
typedef int32_t Ints __attribute__((vector_size(4 * W)));
typedef uint32_t Bits __attribute__((vector_size(4 * W)));
typedef uint16_t Halves __attribute__((vector_size(2 * W)));
typedef double Doubles __attribute__((vector_size(8 * W)));
typedef float VecInMemory __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef uint16_t HalvesInMemory __attribute__((vector_size(2 * W), aligned(2), may_alias));

inline Vec splat(float x) { return x - Vec{}; }

// a b + c, rounded once where the machine can. A compiler that may choose does so in one loop and not in the other, so
// that one sum would come out differently in two of them.
inline Vec multiply_add(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

inline Vec load(const float* p) { return *reinterpret_cast<const VecInMemory*>(p); }
inline void store(float* p, Vec x) { *reinterpret_cast<VecInMemory*>(p) = x; }

// The first `count` floats from p on, at most a vector, and zeros after them.
inline Vec load(const float* p, int64_t count) {
  if (count >= W) return load(p);
  Vec x{};
  std::memcpy(&x, p, 4 * count);
  return x;
}

inline void store(float* p, Vec x, int64_t count) {
  if (count >= W)
    store(p, x);
  else
    std::memcpy(p, &x, 4 * count);
}

// e^x = scale (1 + m), with scale a power of two and 1 + m within a factor sqrt(2) of 1. x saturates at -87 and 88.
struct Exponential {
  Vec scale, m;
};

inline Exponential exponential(Vec x) {
  x = x < -87.0f ? splat(-87.0f) : x;
  x = x > 88.0f ? splat(88.0f) : x;
  const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const Vec n = (x * 1.44269504f + shift) - shift;
  const Vec r = (x - n * 0.693145752f) - n * 1.42860677e-6f;  // ln 2 in two parts: n times the first is exact
  // The Taylor series of e^r - 1; what it leaves out is below 6e-9 for |r| <= ln(2) / 2.
  Vec tail = r * (1.0f / 5040) + 1.0f / 720;
  tail = tail * r + 1.0f / 120;
  tail = tail * r + 1.0f / 24;
  tail = tail * r + 1.0f / 6;
  tail = tail * r + 0.5f;
  const Ints exponent = (__builtin_convertvector(n, Ints) + 127) << 23;
  return {reinterpret_cast<Vec>(exponent), r + r * r * tail};
}

inline Vec exp(Vec x) {
  const Exponential e = exponential(x);
  return x < -87.0f ? Vec{} : e.scale + e.scale * e.m;
}

// e^x for x <= 0 to 4e-7; below -87, where it counts for nothing in a sum or a gradient, e^-87.
inline Vec exp_of_difference(Vec x) {
  x = x < -87.0f ? splat(-87.0f) : x;
  const Vec shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const Vec r = x - (shifted - 12582912.0f) * 0.693147181f;
  Vec series = r * (1.0f / 720) + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  return series * reinterpret_cast<Vec>((reinterpret_cast<Bits>(shifted) << 23) + 0x3f800000u);
}

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

inline Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp(-x)); }

// (e^2x - 1) / (e^2x + 1), from e^2x - 1 itself so that a small x loses nothing.
inline Vec tanh(Vec x) {
  const Exponential e = exponential(2.0f * x);
  const Vec minus_one = e.scale * e.m + (e.scale - 1.0f);
  return minus_one / (minus_one + 2.0f);
}

enum class Activation { sigmoid, tanh, relu, linear };

inline Activation activation_of(c10::string_view name) {
  return name == "sigmoid" ? Activation::sigmoid
         : name == "tanh"  ? Activation::tanh
         : name == "relu"  ? Activation::relu
                           : Activation::linear;
}

inline Vec activate(Vec x, Activation f) {
  if (f == Activation::sigmoid) return sigmoid(x);
  if (f == Activation::tanh) return tanh(x);
  if (f == Activation::linear) return x;
  return x < 0.0f ? Vec{} : x;
}

// f'(x) from y = f(x).
inline Vec slope(Vec y, Activation f) {
  if (f == Activation::sigmoid) return y * (1.0f - y);
  if (f == Activation::tanh) return 1.0f - y * y;
  if (f == Activation::linear) return splat(1.0f);
  return y > 0.0f ? splat(1.0f) : Vec{};
}

// Numbers in memory are fp32, bf16 (uint16_t) or, on machines that convert it, fp16 (Half), in registers fp32.
inline Vec read(const float* p) { return load(p); }
inline Vec read(const uint16_t* p) {
  const Halves x = *reinterpret_cast<const HalvesInMemory*>(p);
  return reinterpret_cast<Vec>(__builtin_convertvector(x, Bits) << 16);
}

inline void write(float* p, Vec x) { store(p, x); }
inline void write(uint16_t* p, Vec x) {  // to the nearest, ties to even
#if defined(__AVX512BF16__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh((__m512)x));
#else
  const Bits bits = reinterpret_cast<Bits>(x);
  const Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  *reinterpret_cast<HalvesInMemory*>(p) = __builtin_convertvector(rounded, Halves);
#endif
}

struct Half {
  uint16_t bits;
};

#if defined(__AVX512FP16__)
inline Vec read(const Half* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline void write(Half* p, Vec x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
#endif

inline Vec read(const float* p, int64_t count) { return load(p, count); }
template <class Element>
Vec read(const Element* p, int64_t count) {
  if (count >= W) return read(p);
  Element x[W] = {};
  std::copy(p, p + count, x);
  return read(x);
}

inline void write(float* p, Vec x, int64_t count) { store(p, x, count); }
template <class Element>
void write(Element* p, Vec x, int64_t count) {
  if (count >= W) return write(p, x);
  Element rounded[W];
  write(rounded, x);
  std::copy(rounded, rounded + count, p);
}

}  // namespace
