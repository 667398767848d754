// Products of factors that are rounded to 16 bits, for CPUs that multiply these faster than fp32.
//
// In fp16 (AVX-512 FP16) CHAIN products after the other are added up in fp16, the sums of these chains in fp32; in bf16
// (AMX, AVX-512 BF16) every sum is in fp32. A sum of more than DEPTH products is taken piece by piece, and rounded to the
// dtype of the result after each piece. A sum in fp16 is three times as exact as one in bf16, though a chain loses some
// of what the factors keep.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "cross_entropy.h"
#include "formats.h"
#include "vectors.h"

namespace {

#if defined(__AVX512FP16__) || defined(__AVX512BF16__)

constexpr int64_t PANELS = 8, BLOCKS = 16;  // of the right and of the left factor that are packed together
constexpr int64_t DEPTH = 640;  // products of a sum whose packed factors lie in the cache together
constexpr int64_t SLICE = 64;   // rows of the right factor that are packed panel after panel

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
class Room {
  struct alignas(64) Line {
    uint16_t numbers[32];
  };
  std::unique_ptr<Line[]> lines;

 public:
  explicit Room(int64_t size) : lines(new Line[size / 32 + 1]) {}
  uint16_t* data() { return lines[0].numbers; }
};

// `there` numbers side by side in 16 bits each, and zeros up to `size`.
template <class Format, class Element>
void round_all(const Element* x, int64_t there, int64_t size, uint16_t* out) {
  int64_t l = 0;
  for (; l + 16 <= size; l += 16) put(out + l, sixteen<Format>(x + l, 1, there - l));
  for (; l < size; ++l) out[l] = l < there ? bits<Format>(x[l]) : 0;
}

// Blocks of the left factor, TALL rows each from row i on, columns k to k + depth, in units. A block lies by rows,
// [TALL][units], where a row lies in one piece or the format wants it so, else by columns, [units][TALL]. Rows that are
// not there are zeros.
template <class Format, class Element>
void pack_left(const Strided<Element>& x, int64_t i, int64_t blocks, int64_t k, int64_t depth, uint16_t* out) {
  constexpr int64_t TALL = Format::TALL;
  const int64_t there = std::min(blocks * TALL, x.rows - i), units = units_of<Format>(depth);
  if (x.across == 1) {
    for (int64_t r = 0; r < blocks * TALL; ++r, out += 2 * units) {
      const Element* row = x.at(i + r, k);
      const int64_t numbers = r < there ? depth : 0;
      if constexpr (Format::STEP == 2) {
        round_all<Format>(row, numbers, 2 * units, out);
        continue;
      }
      int64_t j = 0;
      for (; j + 16 <= depth; j += 16) {
        const __m256i found = sixteen<Format>(row + j, 1, numbers - j);
        put(out + 2 * j, pairs(found, found));
      }
      for (; j < depth; ++j) out[2 * j] = out[2 * j + 1] = j < numbers ? bits<Format>(row[j]) : 0;
    }
    return;
  }
  // a unit of each of sixteen rows from r on
  const auto unit = [&](int64_t u, int64_t r) {
    const int64_t j = u * Format::STEP;
    const __m256i first = sixteen<Format>(x.at(i + r, k + j), x.down, j < depth ? there - r : 0);
    if constexpr (Format::STEP == 1) return pairs(first, first);
    return pairs(first, sixteen<Format>(x.at(i + r, k + j + 1), x.down, j + 1 < depth ? there - r : 0));
  };
  if constexpr (Format::BY_ROWS) {
    for (int64_t u = 0; u < units; u += 16)
      for (int64_t r = 0; r < blocks * TALL; r += 16) {
        Sixteen square[16];
        for (int64_t l = 0; l < 16; ++l) square[l] = (Sixteen)unit(u + l, r);
        transpose_square(square);
        for (int64_t l = 0; l < 16; ++l) put(out + 2 * ((r + l) * units + u), (__m512i)square[l]);
      }
    return;
  }
  for (int64_t u = 0; u < units; ++u)
    for (int64_t r = 0; r < blocks * TALL; r += 2 * TALL) {
      const __m512i both = unit(u, r);
      uint16_t* to = out + 2 * (r * units + u * TALL);
      put(to, _mm512_castsi512_si256(both));
      if (r + TALL < blocks * TALL) put(to + 2 * TALL * units, _mm512_extracti64x4_epi64(both, 1));
    }
}

// Columns j to j + COLUMNS of the right factor, rows k to k + depth: [units][COLUMNS], zeros where there are no columns.
// `room`, in fp16 alone, is for COLUMNS rows of so many units.
template <class Format>
void pack_right(const Strided<float>& x, int64_t k, int64_t j, int64_t depth, uint16_t* room, uint16_t* out) {
  constexpr int64_t COLUMNS = Format::COLUMNS, STEP = Format::STEP;
  const int64_t wide = std::min(COLUMNS, x.columns - j), units = units_of<Format>(depth);
  if (x.down == 1) {
    if constexpr (STEP == 1) {
      for (int64_t c = 0; c < COLUMNS; ++c)
        round_all<Format>(x.at(k, j + c), c < wide ? depth : 0, units, room + c * units);
      transpose_numbers(room, COLUMNS, units, units, out, 1);
      return;
    }
    for (int64_t c = 0; c < COLUMNS; c += 16)
      for (int64_t u = 0; u < units; u += 16) {
        Sixteen square[16];  // a row: units of one column
        for (int64_t l = 0; l < 16; ++l) {
          const float* from = x.at(k + 2 * u, j + c + l);
          const int64_t there = c + l < wide ? depth - 2 * u : 0;
          const __m256i first = sixteen<Format>(from, 1, there), second = sixteen<Format>(from + 16, 1, there - 16);
          square[l] = (Sixteen)_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
        }
        transpose_square(square);
        for (int64_t l = 0; l < std::min<int64_t>(units - u, 16); ++l)
          put(out + 2 * ((u + l) * COLUMNS + c), (__m512i)square[l]);
      }
    return;
  }
  for (int64_t l = 0; l < STEP * units; l += STEP, out += STEP * COLUMNS)
    for (int64_t c = 0; c < COLUMNS; c += 16) {
      const auto row = [&](int64_t l) {
        return sixteen<Format>(x.at(k + l, j + c), x.across, l < depth ? wide - c : 0);
      };
      if constexpr (STEP == 1)
        put(out + c, row(l));
      else
        put(out + 2 * c, pairs(row(l), row(l + 1)));
    }
}

// As `Format::multiply`, for as many vectors of a tile, at most C, as are wanted.
template <class Format, int C>
void multiply_vectors(int64_t wanted, const uint16_t* left, int64_t row, const uint16_t* right, int64_t units,
                      float* tile) {
  if constexpr (C > 1)
    if (wanted < C) return multiply_vectors<Format, C - 1>(wanted, left, row, right, units, tile);
  if (Format::BY_ROWS || row)
    Format::template multiply<C, true>(left, row, right, units, tile);
  else
    Format::template multiply<C, false>(left, row, right, units, tile);
}

// The tile of out (M, N) at row i and column j: out = (or +=) factor left right. The rows of a left block lie `row`
// numbers apart; 0: it lies by columns.
template <class Format, class Out>
void multiply_tile(const uint16_t* left, int64_t row, const uint16_t* right, int64_t units, float factor, bool add,
                   int64_t i, int64_t j, int64_t M, int64_t N, Out* out) {
  constexpr int64_t COLUMNS = Format::COLUMNS, LANES = Format::LANES, TALL = Format::TALL;
  alignas(64) float tile[TALL * COLUMNS];
  if constexpr (Format::ADDS) std::fill_n(tile, TALL * COLUMNS, 0.0f);
  const int64_t wide = std::min(COLUMNS, N - j), tall = std::min(TALL, M - i);
  out += i * N + j;
  // What is written last is fetched first: a store that misses the cache would hold up those of the tile.
  for (int64_t r = 0; r < tall; ++r)
    for (int64_t c = 0; c < wide; c += 64 / sizeof(Out)) __builtin_prefetch(out + r * N + c, 1);
  multiply_vectors<Format, COLUMNS / LANES>((wide + LANES - 1) / LANES, left, row, right, units, tile);
  for (int64_t r = 0; r < tall; ++r)
    for (int64_t c = 0; c < wide; c += W) {
      Out* to = out + r * N + c;
      const Vec found = factor * load(tile + r * COLUMNS + c);
      write(to, add ? read(to, wide - c) + found : found, wide - c);
    }
}

// The smaller factor is packed whole, then the larger one group by group: what lies side by side is read together. Each
// thread has as many groups as any other. A larger left factor that lies by rows in bf16 already is read where it lies,
// but for rows that do not fill a block.
template <class Format, class Left, class Out>
void multiply_reduced(const Strided<Left>& a, const Strided<float>& b, float factor, bool add, int64_t threads,
                      Out* out) {
  constexpr int64_t COLUMNS = Format::COLUMNS, STEP = Format::STEP, TALL = Format::TALL;
  const int64_t M = a.rows, K = a.columns, N = b.columns;
  const int64_t blocks = (M + TALL - 1) / TALL, panels = (N + COLUMNS - 1) / COLUMNS;
  const int64_t pieces = (K + DEPTH - 1) / DEPTH, most = ((K + pieces - 1) / pieces + 31) / 32 * 32;
  const bool by_rows = Format::BY_ROWS || a.across == 1, by_panels = N > M;
  const bool lies_ready = std::is_same_v<Left, uint16_t> && a.across == 1 && a.down;
  const int64_t whole = by_panels ? blocks : panels, parts = by_panels ? panels : blocks;
  const int64_t most_parts = by_panels ? PANELS : BLOCKS;  // in a group
  const int64_t groups = (parts + most_parts * threads - 1) / (most_parts * threads) * threads;
  const int64_t widest_left = 2 * TALL * units_of<Format>(most), widest_right = COLUMNS * most;
  Room kept(whole * (by_panels ? widest_left : widest_right));
#pragma omp parallel num_threads(threads)
  {
    Room room(STEP == 1 ? widest_right : 0), some(most_parts * (by_panels ? widest_right : widest_left));
    Format::start();
    for (int64_t k = 0; k < K; k += most) {
      const int64_t depth = std::min(most, K - k), units = units_of<Format>(depth);
      const int64_t left_size = 2 * TALL * units, right_size = STEP * COLUMNS * units;
      const int64_t packed_row = by_rows ? 2 * units : 0;
      if (by_panels) {
#pragma omp for
        for (int64_t n = 0; n < blocks; ++n)
          pack_left<Format>(a, n * TALL, 1, k, depth, kept.data() + n * left_size);
      } else {
#pragma omp for
        for (int64_t l = 0; l < depth; l += SLICE)
          for (int64_t n = 0; n < panels; ++n)
            pack_right<Format>(b, k + l, n * COLUMNS, std::min(SLICE, depth - l), room.data(),
                               kept.data() + n * right_size + l * COLUMNS);
      }
#pragma omp for
      for (int64_t group = 0; group < groups; ++group) {
        const int64_t first = parts * group / groups, count = parts * (group + 1) / groups - first;
        const auto multiply = [&](const uint16_t* left, int64_t row, const uint16_t* right, int64_t i, int64_t j) {
          multiply_tile<Format>(left, row, right, units, factor, add || k > 0, i * TALL, j * COLUMNS, M, N, out);
        };
        if (by_panels) {
          for (int64_t n = 0; n < count; ++n)
            pack_right<Format>(b, k, (first + n) * COLUMNS, depth, room.data(), some.data() + n * right_size);
          for (int64_t i = 0; i < blocks; ++i)
            for (int64_t n = 0; n < count; ++n)
              multiply(kept.data() + i * left_size, packed_row, some.data() + n * right_size, i, first + n);
        } else {
          const bool is_ready = lies_ready && depth % Format::FULL == 0;
          const int64_t ready = is_ready ? std::min(count, M / TALL - first) : 0;  // blocks
          pack_left<Format>(a, (first + ready) * TALL, count - ready, k, depth, some.data());
          for (int64_t n = 0; n < count; ++n) {
            const bool as_is = n < ready;
            const auto* there = reinterpret_cast<const uint16_t*>(a.at((first + n) * TALL, k));
            const uint16_t* left = as_is ? there : some.data() + (n - ready) * left_size;
            for (int64_t j = 0; j < panels; ++j)
              multiply(left, as_is ? a.down : packed_row, kept.data() + j * right_size, first + n, j);
          }
        }
      }
    }
    Format::end();
  }
}

template <class Format>
void reduced_product_in(const Tensor& left, const Tensor& right, const Tensor& out, double factor, bool add,
                        int64_t threads) {
  typedef typename Format::Number Number;
  const auto from = [&](const auto& a) {
    if (out.scalar_type() == at::kFloat)
      multiply_reduced<Format>(a, Strided<float>(right), factor, add, threads, out.mutable_data_ptr<float>());
    else
      multiply_reduced<Format>(a, Strided<float>(right), factor, add, threads,
                               static_cast<Number*>(out.mutable_data_ptr()));
  };
  if (left.scalar_type() == at::kFloat)
    from(Strided<float>(left));
  else
    from(Strided<Number>(left));
}

#endif

// out (M, N), contiguous, = (or, to add, +=) factor left (M, K) right (K, N), in bf16 or fp16. K >= 1; left and out are
// in fp32 or in that format.
void reduced_product(const Tensor& left, const Tensor& right, const Tensor& out, bool in_bf16, double factor, bool add,
                     int64_t threads) {
#if defined(__AVX512BF16__)
  if (in_bf16) require_amx();
  if (in_bf16) return reduced_product_in<InBf16>(left, right, out, factor, add, threads);
#endif
#if defined(__AVX512FP16__)
  if (!in_bf16) return reduced_product_in<InHalf>(left, right, out, factor, add, threads);
#endif
  TORCH_CHECK(false, "this machine does not multiply in ", in_bf16 ? "bf16" : "fp16");
}

}  // namespace
