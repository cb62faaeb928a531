// The kernels on the host, built with the address and undefined-behaviour sanitizers: arrays exactly
// as long as they have to be, and sources past 4 GiB that hold memory only where it is touched.

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda_on_host.h"

namespace {

int failures = 0;
int checks = 0;

void check(bool holds, const char* what) {
  checks++;
  if (holds) return;
  failures++;
  std::printf("FAILED %s\n", what);
}

// As src/cuda/kernels.rs works it out.
GatherArgs arguments(const void* source, u64 rows, u64 units, const void* index, u32 index_type,
                     u64 length, void* out, u64* first_outside, u32 mode) {
  GatherArgs args{};
  std::memset(&args.fill, 0x5a, sizeof args.fill);
  args.source = source;
  args.rows = rows;
  args.units = units;
  args.index = index;
  args.index_type = index_type;
  args.length = length;
  args.out = out;
  args.first_outside = first_outside;
  args.mode = mode;
  args.wrap_negative = 1;
  if (units > 1) {
    unsigned bits = 64 - static_cast<unsigned>(__builtin_clzll(units - 1));
    args.units_magic = static_cast<u64>((static_cast<unsigned __int128>(1) << (63 + bits)) / units + 1);
    args.units_shift = bits - 1;
  }
  return args;
}

// Rows of `units` accesses of one byte to sixteen, in every mode, with every kernel.
template <typename Unit>
void small(Kernel row, Kernel rows_kernel, const char* name) {
  for (u64 units = 1; units <= 7; units += 3) {
    for (u32 mode = RAISE; mode <= FILL; mode++) {
      const u64 rows = 13, length = 700;
      const std::unique_ptr<Unit[]> source(new Unit[rows * units]), out(new Unit[length * units]);
      const std::unique_ptr<int[]> index(new int[length]);
      unsigned char* bytes = reinterpret_cast<unsigned char*>(source.get());
      for (u64 i = 0; i < rows * units * sizeof(Unit); i++) bytes[i] = static_cast<unsigned char>(i * 7 + 1);
      for (u64 i = 0; i < length; i++) index[i] = static_cast<int>(i * 5 % 26) - 13;
      const bool outside = mode != WRAP && mode != CLIP;
      if (outside) index[333] = 13, index[600] = -2147483647 - 1;
      std::memset(static_cast<void*>(out.get()), 0xee, length * units * sizeof(Unit));
      u64 first = ~0ull;
      const GatherArgs args = arguments(source.get(), rows, units, index.get(), I32, length, out.get(), &first, mode);
      const u64 per_block = 256 * (units == 1 ? 1 : 4);
      // Fewer blocks than there is work for, so that they stride.
      run_on_host(units == 1 ? row : rows_kernel, static_cast<unsigned>((length * units + per_block - 1) / per_block + 1) / 2, 256, args);
      check(first == (mode == RAISE ? 333 : ~0ull), name);
      bool right = true;
      for (u64 i = 0; i < length; i++) {
        const int j = index[i];
        const unsigned char* got = reinterpret_cast<unsigned char*>(&out[i * units]);
        const bool bad = j >= 13 || j < -13;
        const u64 from = mode == CLIP ? (j < 0 ? 0 : static_cast<u64>(j)) : static_cast<u64>((j + 26) % 13);
        for (u64 k = 0; k < units * sizeof(Unit); k++) {
          const unsigned char expected = bad ? (mode == FILL ? 0x5a : 0xee) : bytes[from * units * sizeof(Unit) + k];
          right = right && got[k] == expected;
        }
      }
      check(right, name);
    }
  }
}

// Every index type, its extremes included.
template <typename Int>
void index_type(u32 type, const char* name) {
  const std::vector<Int> index = {0, 5, static_cast<Int>(-1), static_cast<Int>(-6), static_cast<Int>(-7),
                                  static_cast<Int>(1ull << (sizeof(Int) * 8 - 1))};
  const unsigned char source[6] = {10, 11, 12, 13, 14, 15};
  unsigned char out[6] = {};
  u64 first = ~0ull;
  run_on_host(gather_row_1, 1, 256, arguments(source, 6, 1, index.data(), type, index.size(), out, &first, RAISE));
  const bool is_signed = static_cast<Int>(-1) < 0;
  check(first == (is_signed ? 4 : 2), name);
  check(out[0] == 10 && out[1] == 15, name);
  check(!is_signed || (out[2] == 15 && out[3] == 10), name);
}

// A source of `bytes` bytes of which only the touched pages exist.
void sparse() {
  const u64 rows = 3, units = (u64{1} << 32) / 16 + 5;  // rows of 4 GiB and 80 bytes
  const size_t bytes = rows * units * 16;
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    check(false, "a sparse source could not be mapped");
    return;
  }
  // Scalars: the last element of a source of 3 Gi float32.
  u32* scalars = static_cast<u32*>(mapping);
  const u64 count = bytes / 4;
  scalars[count - 1] = 77;
  scalars[count / 2] = 78;
  const long long index[4] = {static_cast<long long>(count - 1), -1, static_cast<long long>(count / 2), -static_cast<long long>(count)};
  u32 out[4] = {};
  u64 first = ~0ull;
  run_on_host(gather_row_4, 1, 256, arguments(mapping, count, 1, index, I64, 4, out, &first, RAISE));
  check(out[0] == 77 && out[1] == 77 && out[2] == 78 && out[3] == 0 && first == ~0ull, "scalars past 2^33 bytes");

  // The last accesses of a row that begins past 8 GiB: one block of the launch that would copy it.
  uint4* wide = static_cast<uint4*>(mapping);
  wide[rows * units - 1] = {1, 2, 3, 4};
  void* result = mmap(nullptr, units * 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (result == MAP_FAILED) {
    check(false, "a sparse result could not be mapped");
    return;
  }
  const signed char last = -1;
  const GatherArgs args = arguments(mapping, rows, units, &last, I8, 1, result, &first, RAISE);
  const u64 block = 256 * 4;
  gridDim.x = static_cast<unsigned>((units + block - 1) / block);
  blockDim.x = 256;
  blockIdx.x = gridDim.x - 1;
  for (threadIdx.x = 0; threadIdx.x < 256; threadIdx.x++) gather_rows_16(args);
  const uint4 got = static_cast<uint4*>(result)[units - 1];
  check(got.x == 1 && got.w == 4 && first == ~0ull, "the end of a row that begins past 2^33 bytes");
  munmap(result, units * 16);
  munmap(mapping, bytes);
}

}  // namespace

int main() {
  small<unsigned char>(gather_row_1, gather_rows_1, "accesses of 1 byte");
  small<unsigned short>(gather_row_2, gather_rows_2, "accesses of 2 bytes");
  small<u32>(gather_row_4, gather_rows_4, "accesses of 4 bytes");
  small<uint2>(gather_row_8, gather_rows_8, "accesses of 8 bytes");
  small<uint4>(gather_row_16, gather_rows_16, "accesses of 16 bytes");
  index_type<signed char>(I8, "int8");
  index_type<unsigned char>(U8, "uint8");
  index_type<short>(I16, "int16");
  index_type<unsigned short>(U16, "uint16");
  index_type<int>(I32, "int32");
  index_type<u32>(U32, "uint32");
  index_type<long long>(I64, "int64");
  index_type<u64>(U64, "uint64");
  sparse();
  std::printf("%d checks of the kernels under sanitizers, %d failed\n", checks, failures);
  return failures == 0 && checks > 0 ? 0 : 1;
}
