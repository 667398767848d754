// Products in bf16 by the matrix unit of Intel's CPUs, AMX. Its registers hold SIDE rows of SIDE units, a unit being a
// float or two numbers in bf16 that lie side by side along the depth; sums are in fp32.
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>

// clang 14 has names of its own
#if (defined(__AMX_BF16__) || defined(__AMXBF16__)) && (defined(__AMX_TILE__) || defined(__AMXTILE__)) && \
    defined(__AVX512BF16__)
#define HORNN_AMX
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

// Whether this library multiplies with AMX, for which a process has to ask the system once.
inline bool has_amx() {
#if defined(HORNN_AMX)
  constexpr long ASK_FOR = 0x1023, REGISTERS = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool may = syscall(SYS_arch_prctl, ASK_FOR, REGISTERS) == 0;
  return may;
#else
  return false;
#endif
}

// For what is called where the library multiplies with AMX: not without the system's leave.
inline void require_amx() {
#if defined(HORNN_AMX)
  TORCH_CHECK(has_amx(), "the system does not let this process use AMX");
#endif
}

#if defined(HORNN_AMX)

constexpr int SIDE = 16;
constexpr int64_t UNIT = 4;  // bytes

// Set this thread's registers for left factors of so many rows, at most 2 SIDE: 0 to 3 are sums, 4 and 5 of the left
// factor, 6 and 7 of the right one. Of more than SIDE rows the second half is in 2, 3 and 5.
inline void set_registers(int rows) {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, unused[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {};
  } shape;
  const uint8_t first = rows > SIDE ? (rows + 1) / 2 : rows, second = rows > SIDE ? rows / 2 : rows;
  const uint8_t all[] = {first, first, second, second, first, second, SIDE, SIDE};
  for (int i = 0; i < 8; ++i) shape.rows[i] = all[i];
  asm volatile("" ::"m"(shape));  // GCC 12: the intrinsic says that it reads 8 bytes of them
  _tile_loadconfig(&shape);
}

inline void free_registers() { _tile_release(); }

// The factors of a product in memory: rows of the left one, and of the right one units side by side in SIDE columns,
// `down` bytes from a unit to the next along the depth and `across` bytes from SIDE columns to the next.
struct Factors {
  const char* left;
  int64_t row;  // bytes
  const char* right;
  int64_t down, across;

  const char* left_at(int64_t unit) const { return left + unit * UNIT; }
  const char* right_at(int64_t unit, int64_t c) const { return right + unit * down + c * across; }
};

// sums (rows, C SIDE), `row` floats apart, += left right, over `units` along the depth, a multiple of SIDE. For the rows
// that were set: at most SIDE of them, and 1, 2 or 4 times SIDE columns ..
template <int C>
void multiply_few(const Factors& x, int64_t units, float* sums, int64_t row) {
  const int64_t apart = row * sizeof(float);
  asm volatile("" ::: "memory");  // loads of registers do not say that they read memory
  _tile_loadd(0, sums, apart);
  if constexpr (C > 1) _tile_loadd(1, sums + SIDE, apart);
  if constexpr (C > 2) _tile_loadd(2, sums + 2 * SIDE, apart);
  if constexpr (C > 2) _tile_loadd(3, sums + 3 * SIDE, apart);
  for (int64_t u = 0; u < units; u += SIDE) {
    _tile_loadd(4, x.left_at(u), x.row);
    _tile_loadd(6, x.right_at(u, 0), x.down);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (C > 1) _tile_loadd(7, x.right_at(u, 1), x.down);
    if constexpr (C > 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (C > 2) _tile_loadd(6, x.right_at(u, 2), x.down);
    if constexpr (C > 2) _tile_dpbf16ps(2, 4, 6);
    if constexpr (C > 2) _tile_loadd(7, x.right_at(u, 3), x.down);
    if constexpr (C > 2) _tile_dpbf16ps(3, 4, 7);
  }
  _tile_stored(0, sums, apart);
  if constexpr (C > 1) _tile_stored(1, sums + SIDE, apart);
  if constexpr (C > 2) _tile_stored(2, sums + 2 * SIDE, apart);
  if constexpr (C > 2) _tile_stored(3, sums + 3 * SIDE, apart);
}

// .. or more than SIDE rows, of which `first` are in the first half, and 1 or 2 times SIDE columns: sums += left right
// (to ADD), or sums = left right.
template <int C, bool ADD>
void multiply_many(const Factors& x, int first, int64_t units, float* sums, int64_t row) {
  const int64_t apart = row * sizeof(float);
  float* below = sums + first * row;
  asm volatile("" ::: "memory");
  if constexpr (ADD) {
    _tile_loadd(0, sums, apart);
    _tile_loadd(2, below, apart);
    if constexpr (C > 1) _tile_loadd(1, sums + SIDE, apart);
    if constexpr (C > 1) _tile_loadd(3, below + SIDE, apart);
  } else {
    _tile_zero(0);
    _tile_zero(2);
    if constexpr (C > 1) _tile_zero(1);
    if constexpr (C > 1) _tile_zero(3);
  }
  for (int64_t u = 0; u < units; u += SIDE) {
    _tile_loadd(6, x.right_at(u, 0), x.down);
    _tile_loadd(4, x.left_at(u), x.row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, x.left_at(u) + first * x.row, x.row);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (C > 1) _tile_loadd(7, x.right_at(u, 1), x.down);
    if constexpr (C > 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (C > 1) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, apart);
  _tile_stored(2, below, apart);
  if constexpr (C > 1) _tile_stored(1, sums + SIDE, apart);
  if constexpr (C > 1) _tile_stored(3, below + SIDE, apart);
}

#endif

}  // namespace
