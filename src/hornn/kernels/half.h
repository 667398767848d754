// Products in fp16, for CPUs that multiply there at twice the rate of fp32 (AVX-512 FP16).
//
// Factors are rounded to fp16. CHAIN products after the other are added up in fp16, the sums of these chains in fp32.
// A sum of more than DEPTH products is taken piece by piece, and rounded to the dtype of the result after each piece.
// So a sum is three times as exact as one of factors in bf16, though a chain loses some of what the factors keep.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "cross_entropy.h"
#include "vectors.h"

namespace {

bool has_fp16() {
#if defined(__AVX512FP16__)
  return true;
#else
  return false;
#endif
}

#if defined(__AVX512FP16__)

constexpr int CHAIN = 32;       // products that are added up in fp16
constexpr int TALL = 8;         // rows of a tile
constexpr int LANES = 32;       // numbers in a vector of fp16
constexpr int PANEL = 64;       // columns of a tile: two vectors of fp16
constexpr int64_t GROUP = 8;    // tiles whose factors are packed together
constexpr int64_t DEPTH = 640;  // products of a sum whose packed factors lie in the cache together

// A matrix in memory, whose neighbours lie `down` and `across` numbers apart.
template <class Element>
struct Strided {
  const Element* numbers;
  int64_t rows, columns, down, across;

  explicit Strided(const Tensor& x)
      : numbers(static_cast<const Element*>(x.const_data_ptr())),
        rows(x.size(0)),
        columns(x.size(1)),
        down(x.stride(0)),
        across(x.stride(1)) {}

  const Element* at(int64_t i, int64_t j) const { return numbers + i * down + j * across; }
};

// Room for `size` numbers that begins where a cache line does: a vector that lies across two takes twice as long to load.
template <class Element>
class Room {
  struct alignas(64) Line {
    Element numbers[64 / sizeof(Element)];
  };
  std::unique_ptr<Line[]> lines;

 public:
  explicit Room(int64_t size) : lines(new Line[size * sizeof(Element) / 64 + 1]) {}
  Element* data() { return lines[0].numbers; }
};

// Numbers as the bits of fp16.
inline uint16_t bits(float x) { return _cvtss_sh(x, 0); }
inline uint16_t bits(Half x) { return x.bits; }
inline __m256i sixteen(const float* p) { return _mm512_cvtps_ph(_mm512_loadu_ps(p), 0); }
inline __m256i sixteen(const Half* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

// Each number twice, side by side: a load of 32 bits then fills a vector with it, one of 16 bits takes longer.
inline uint32_t twice(uint16_t x) { return x * 0x10001u; }
inline __m512i twice(__m256i x) {
  const __m512i wide = _mm512_cvtepu16_epi32(x);
  return _mm512_or_si512(wide, _mm512_slli_epi32(wide, 16));
}

// Blocks of the left factor, TALL rows each from row i on, columns k to k + depth. A block lies by rows, [TALL][depth],
// where a row lies in one piece, else by columns, [depth][TALL]. Rows that are not there are zeros.
template <class Element>
void pack_left(const Strided<Element>& x, int64_t i, int64_t blocks, int64_t k, int64_t depth, uint32_t* out) {
  const int64_t there = std::min(blocks * TALL, x.rows - i);
  if (x.across == 1) {
    for (int64_t r = 0; r < blocks * TALL; ++r, out += depth) {
      if (r >= there) {
        std::fill_n(out, depth, 0);
        continue;
      }
      const Element* row = x.at(i + r, k);
      int64_t j = 0;
      for (; j + 16 <= depth; j += 16) _mm512_storeu_si512(out + j, twice(sixteen(row + j)));
      for (; j < depth; ++j) out[j] = twice(bits(row[j]));
    }
    return;
  }
  for (int64_t j = 0; j < depth; ++j) {
    const Element* column = x.at(i, k + j);
    uint32_t* to = out + j * TALL;
    int64_t r = 0;
    for (; x.down == 1 && r + 2 * TALL <= there; r += 2 * TALL) {
      const __m512i both = twice(sixteen(column + r));
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + r * depth), _mm512_castsi512_si256(both));
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + (r + TALL) * depth), _mm512_extracti64x4_epi64(both, 1));
    }
    for (; r < blocks * TALL; ++r)
      to[r / TALL * TALL * depth + r % TALL] = r < there ? twice(bits(column[r * x.down])) : 0;
  }
}

// Columns j to j + PANEL of the right factor, rows k to k + depth: [depth][PANEL], zeros where there are no columns.
// `room` is for PANEL rows of `depth` numbers.
void pack_right(const Strided<float>& x, int64_t k, int64_t j, int64_t depth, uint16_t* room, uint16_t* out) {
  const int64_t wide = std::min<int64_t>(PANEL, x.columns - j);
  const auto pack = [&](const float* from, int64_t step, int64_t there, int64_t size, uint16_t* to) {
    int64_t l = 0;
    for (; step == 1 && l + 16 <= there; l += 16)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + l), sixteen(from + l));
    for (; l < size; ++l) to[l] = l < there ? bits(from[l * step]) : 0;
  };
  if (x.down != 1) {
    for (int64_t l = 0; l < depth; ++l) pack(x.at(k + l, j), x.across, wide, PANEL, out + l * PANEL);
    return;
  }
  for (int64_t c = 0; c < PANEL; ++c) pack(x.at(k, j + c), 1, c < wide ? depth : 0, depth, room + c * depth);
  transpose_halves(room, PANEL, depth, out, 1);
}

// tile (TALL, PANEL) += left right, of which the first C vectors are wanted.
template <int C, bool BY_ROWS>
void multiply_halves(const uint32_t* left, const uint16_t* right, int64_t depth, float* tile) {
  for (int64_t start = 0; start < depth; start += CHAIN) {
    __m512h sum[TALL][C] = {};
    const int64_t end = std::min(start + CHAIN, depth);
    for (int64_t k = start; k < end; ++k) {
      __m512h column[C];
      for (int c = 0; c < C; ++c) column[c] = _mm512_load_ph(right + k * PANEL + c * LANES);
      for (int r = 0; r < TALL; ++r) {
        const uint32_t number = BY_ROWS ? left[r * depth + k] : left[k * TALL + r];
        const __m512h x = _mm512_castsi512_ph(_mm512_set1_epi32(number));
        for (int c = 0; c < C; ++c) sum[r][c] = _mm512_fmadd_ph(x, column[c], sum[r][c]);
      }
    }
    for (int r = 0; r < TALL; ++r)
      for (int c = 0; c < C; ++c) {
        float* to = tile + r * PANEL + c * LANES;
        const __m512i both = _mm512_castph_si512(sum[r][c]);
        store(to, load(to) + _mm512_cvtph_ps(_mm512_castsi512_si256(both)));
        store(to + 16, load(to + 16) + _mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1)));
      }
  }
}

// The tile of out (M, N) at row i and column j: out = (or +=) factor left right.
template <class Out>
void multiply_tile(const uint32_t* left, bool by_rows, const uint16_t* right, int64_t depth, float factor, bool add,
                   int64_t i, int64_t j, int64_t M, int64_t N, Out* out) {
  alignas(64) float tile[TALL * PANEL] = {};
  const int64_t wide = std::min<int64_t>(PANEL, N - j), tall = std::min<int64_t>(TALL, M - i);
  out += i * N + j;
  // What is written last is fetched first: a store that misses the cache would hold up those of the tile.
  for (int64_t r = 0; r < tall; ++r)
    for (int64_t c = 0; c < wide; c += 64 / sizeof(Out)) __builtin_prefetch(out + r * N + c, 1);
  if (wide > LANES)
    (by_rows ? multiply_halves<2, true> : multiply_halves<2, false>)(left, right, depth, tile);
  else
    (by_rows ? multiply_halves<1, true> : multiply_halves<1, false>)(left, right, depth, tile);
  for (int64_t r = 0; r < tall; ++r)
    for (int64_t c = 0; c < wide; c += W) {
      Out* to = out + r * N + c;
      const Vec found = factor * load(tile + r * PANEL + c);
      write(to, add ? read(to, wide - c) + found : found, wide - c);
    }
}

// The smaller factor is packed whole, then the larger one GROUP by GROUP: what lies side by side is read together.
template <class Left, class Out>
void multiply_in_halves(const Strided<Left>& a, const Strided<float>& b, float factor, int64_t threads, Out* out) {
  const int64_t M = a.rows, K = a.columns, N = b.columns;
  const int64_t blocks = (M + TALL - 1) / TALL, panels = (N + PANEL - 1) / PANEL;
  const int64_t pieces = (K + DEPTH - 1) / DEPTH, most = ((K + pieces - 1) / pieces + CHAIN - 1) / CHAIN * CHAIN;
  const bool by_rows = a.across == 1, by_panels = N > M;
  const int64_t whole = by_panels ? blocks : panels, parts = by_panels ? panels : blocks;
  Room<uint32_t> lefts(by_panels ? blocks * TALL * most : 0);
  Room<uint16_t> rights(by_panels ? 0 : panels * PANEL * most);
#pragma omp parallel num_threads(threads)
  {
    Room<uint16_t> room(PANEL * most), some_rights(by_panels ? GROUP * PANEL * most : 0);
    Room<uint32_t> some_lefts(by_panels ? 0 : GROUP * TALL * most);
    for (int64_t k = 0; k < K; k += most) {
      const int64_t depth = std::min(most, K - k), left_size = TALL * depth, right_size = PANEL * depth;
#pragma omp for
      for (int64_t n = 0; n < whole; ++n) {
        if (by_panels)
          pack_left(a, n * TALL, 1, k, depth, lefts.data() + n * left_size);
        else
          pack_right(b, k, n * PANEL, depth, room.data(), rights.data() + n * right_size);
      }
#pragma omp for
      for (int64_t first = 0; first < parts; first += GROUP) {
        const int64_t count = std::min(GROUP, parts - first);
        const auto multiply = [&](const uint32_t* left, const uint16_t* right, int64_t i, int64_t j) {
          multiply_tile(left, by_rows, right, depth, factor, k > 0, i * TALL, j * PANEL, M, N, out);
        };
        if (by_panels) {
          for (int64_t n = 0; n < count; ++n)
            pack_right(b, k, (first + n) * PANEL, depth, room.data(), some_rights.data() + n * right_size);
          for (int64_t i = 0; i < blocks; ++i)
            for (int64_t n = 0; n < count; ++n)
              multiply(lefts.data() + i * left_size, some_rights.data() + n * right_size, i, first + n);
        } else {
          pack_left(a, first * TALL, count, k, depth, some_lefts.data());
          for (int64_t n = 0; n < count; ++n)
            for (int64_t j = 0; j < panels; ++j)
              multiply(some_lefts.data() + n * left_size, rights.data() + j * right_size, first + n, j);
        }
      }
    }
  }
}

#endif

// out (M, N), contiguous, = factor left (M, K) right (K, N). K >= 1; left and out are fp32 or fp16.
void half_product(const Tensor& left, const Tensor& right, const Tensor& out, double factor, int64_t threads) {
#if defined(__AVX512FP16__)
  const auto from = [&](const auto& a) {
    if (out.scalar_type() == at::kHalf)
      multiply_in_halves(a, Strided<float>(right), factor, threads, static_cast<Half*>(out.mutable_data_ptr()));
    else
      multiply_in_halves(a, Strided<float>(right), factor, threads, out.mutable_data_ptr<float>());
  };
  if (left.scalar_type() == at::kHalf)
    from(Strided<Half>(left));
  else
    from(Strided<float>(left));
#else
  TORCH_CHECK(false, "this machine does not multiply in fp16");
#endif
}

}  // namespace
