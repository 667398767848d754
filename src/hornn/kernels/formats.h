// The formats of 16 bits in which a CPU multiplies faster than in fp32: fp16 (AVX-512 FP16), bf16 (AMX, AVX-512 BF16).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "amx.h"
#include "vectors.h"

namespace {

// Whether this machine multiplies so.
bool has_fp16() {
#if defined(__AVX512FP16__)
  return true;
#else
  return false;
#endif
}

bool has_bf16() {
#if defined(__AVX512BF16__)
  return true;
#else
  return false;
#endif
}

#if defined(__AVX512FP16__) || defined(__AVX512BF16__)

inline __m512i broadcast(const uint16_t* unit) {
  int32_t bits;
  std::memcpy(&bits, unit, 4);
  return _mm512_set1_epi32(bits);
}

// A format says how a number is rounded and how a tile is multiplied. A load of 32 bits, a unit, fills a vector: a unit
// of the left factor is STEP neighbours along the depth, one number twice or two numbers; the right factor has such
// units, too. A tile has TALL rows and COLUMNS columns, LANES in a vector; a depth is filled up with zeros to a multiple
// of FULL.
//
// multiply: tile (TALL, COLUMNS), zeros at first where the format ADDS, = left right, of which the first C vectors are
// wanted. The left block lies by rows of units, `row` numbers apart, or by columns, [units][TALL], but where the format
// takes rows alone, BY_ROWS. Each thread calls `start` before its first tile and `end` after its last one.
#if defined(__AVX512FP16__)
struct InHalf {
  typedef Half Number;
  static constexpr int64_t STEP = 1, FULL = 1, LANES = 32, COLUMNS = 64, TALL = 8;
  static constexpr bool BY_ROWS = false, ADDS = true;
  static constexpr int64_t CHAIN = 32;  // products that are added up in fp16

  static void start() {}
  static void end() {}

  static uint16_t round(float x) { return _cvtss_sh(x, 0); }
  static __m256i round(const float* p) { return _mm512_cvtps_ph(_mm512_loadu_ps(p), 0); }

  template <int C, bool ROWS>
  static void multiply(const uint16_t* left, int64_t row, const uint16_t* right, int64_t units, float* tile) {
    for (int64_t start = 0; start < units; start += CHAIN) {
      __m512h sum[TALL][C] = {};
      const int64_t end = std::min(start + CHAIN, units);
      for (int64_t k = start; k < end; ++k) {
        __m512h column[C];
        for (int c = 0; c < C; ++c) column[c] = _mm512_load_ph(right + k * COLUMNS + c * LANES);
        for (int r = 0; r < TALL; ++r) {
          const uint16_t* unit = left + 2 * k * (ROWS ? 1 : TALL) + r * (ROWS ? row : 2);
          const __m512h x = _mm512_castsi512_ph(broadcast(unit));
          for (int c = 0; c < C; ++c) sum[r][c] = _mm512_fmadd_ph(x, column[c], sum[r][c]);
        }
      }
      for (int r = 0; r < TALL; ++r)
        for (int c = 0; c < C; ++c) {
          float* to = tile + r * COLUMNS + c * LANES;
          const __m512i both = _mm512_castph_si512(sum[r][c]);
          store(to, load(to) + _mm512_cvtph_ps(_mm512_castsi512_si256(both)));
          store(to + 16, load(to + 16) + _mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1)));
        }
    }
  }
};
#endif

#if defined(__AVX512BF16__)
struct RoundedToBf16 {
  typedef uint16_t Number;
  static constexpr int64_t STEP = 2, LANES = 16;

  static __m256i round(const float* p) { return (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(p)); }
  static uint16_t round(float x) {
    return static_cast<uint16_t>(_mm_cvtsi128_si32((__m128i)_mm_cvtneps_pbh(_mm_set_ss(x))));
  }
};

#if defined(HORNN_AMX)
struct InBf16 : RoundedToBf16 {
  static constexpr int64_t FULL = 2 * SIDE, COLUMNS = 2 * SIDE, TALL = 2 * SIDE;
  static constexpr bool BY_ROWS = true, ADDS = false;

  static void start() { set_registers(TALL); }
  static void end() { free_registers(); }

  template <int C, bool ROWS>
  static void multiply(const uint16_t* left, int64_t row, const uint16_t* right, int64_t units, float* tile) {
    const auto bytes = [](const uint16_t* numbers) { return reinterpret_cast<const char*>(numbers); };
    multiply_many<C, false>({bytes(left), 2 * row, bytes(right), COLUMNS * UNIT, LANES * UNIT}, SIDE, units, tile,
                            COLUMNS);
  }
};
#else
struct InBf16 : RoundedToBf16 {
  static constexpr int64_t FULL = 2, COLUMNS = 48, TALL = 8;
  static constexpr bool BY_ROWS = false, ADDS = true;

  static void start() {}
  static void end() {}

  template <int C, bool ROWS>
  static void multiply(const uint16_t* left, int64_t row, const uint16_t* right, int64_t units, float* tile) {
    Vec sum[TALL][C];
    for (int r = 0; r < TALL; ++r)
      for (int c = 0; c < C; ++c) sum[r][c] = load(tile + r * COLUMNS + c * LANES);
    for (int64_t k = 0; k < units; ++k) {
      __m512bh column[C];
      for (int c = 0; c < C; ++c) column[c] = (__m512bh)_mm512_load_si512(right + 2 * (k * COLUMNS + c * LANES));
      for (int r = 0; r < TALL; ++r) {
        const __m512bh x = (__m512bh)broadcast(left + 2 * k * (ROWS ? 1 : TALL) + r * (ROWS ? row : 2));
        for (int c = 0; c < C; ++c) sum[r][c] = _mm512_dpbf16_ps(sum[r][c], x, column[c]);
      }
    }
    for (int r = 0; r < TALL; ++r)
      for (int c = 0; c < C; ++c) store(tile + r * COLUMNS + c * LANES, sum[r][c]);
  }
};
#endif
#endif

template <class Format>
constexpr int64_t units_of(int64_t depth) {
  return (depth + Format::FULL - 1) / Format::FULL * Format::FULL / Format::STEP;
}

template <class Format>
uint16_t bits(float x) { return Format::round(x); }
template <class Format>
uint16_t bits(Half x) { return x.bits; }
template <class Format>
uint16_t bits(uint16_t x) { return x; }

// Sixteen numbers, `step` apart, in 16 bits each; from `there` on they are zeros.
template <class Format, class Element>
__m256i sixteen(const Element* x, int64_t step, int64_t there) {
  if (step == 1 && there >= 16) {
    if constexpr (std::is_same_v<Element, float>)
      return Format::round(x);
    else
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  }
  uint16_t found[16] = {};
  for (int64_t l = 0; l < std::min<int64_t>(there, 16); ++l) found[l] = bits<Format>(x[l * step]);
  __m256i result;
  std::memcpy(&result, found, sizeof(result));
  return result;
}

// Sixteen units, of a number of each.
inline __m512i pairs(__m256i first, __m256i second) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first), _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
}

inline void put(uint16_t* to, __m256i x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }
inline void put(uint16_t* to, __m512i x) { _mm512_storeu_si512(to, x); }

#endif

}  // namespace
