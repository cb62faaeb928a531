// out[i] = source[place(index[i])], for rows of any size and indices of any integer type.
//
// Built to gather.ptx by scripts/build_kernels.py. Every count and offset is 64 bits wide. No
// kernel here asserts, traps or follows an unchecked index: a bad one lowers `first_outside` to its
// position, and its row of `out` is left as it was.

typedef unsigned int u32;
typedef unsigned long long u64;

// The numbers of IndexType (src/gather/index.rs) and Mode (src/gather/bounds.rs).
enum IndexType { I8, U8, I16, U16, I32, U32, I64, U64 };
enum Mode { RAISE, WRAP, CLIP, FILL };

// What a launch works on: `GatherArgs` in src/cuda/launch.rs, field by field.
struct GatherArgs {
  uint4 fill;          // the fill value, repeated to 16 bytes
  const void* source;  // `rows` rows of `units` accesses
  const void* index;   // `length` integers of `index_type`
  void* out;           // room for `length` rows
  u64* first_outside;  // starts at its greatest value
  u64 length;
  u64 rows;
  u64 units;           // accesses in a row
  u64 units_magic;     // t / units = umul64hi(t, units_magic) >> units_shift, for t below 2^63
  u32 units_shift;
  u32 index_type;
  u32 mode;
  u32 wrap_negative;
};

// An index as a sign and a magnitude, so that one rule serves all eight types.
struct Index {
  bool negative;
  u64 magnitude;
};

__device__ __forceinline__ Index from_signed(long long value) {
  return {value < 0, value < 0 ? 0 - static_cast<u64>(value) : static_cast<u64>(value)};
}

// The type is the same for every thread of a launch, so that the switch costs no divergence.
__device__ __forceinline__ Index load_index(const GatherArgs& args, u64 i) {
  switch (args.index_type) {
    case I8:  return from_signed(static_cast<const signed char*>(args.index)[i]);
    case U8:  return {false, static_cast<const unsigned char*>(args.index)[i]};
    case I16: return from_signed(static_cast<const short*>(args.index)[i]);
    case U16: return {false, static_cast<const unsigned short*>(args.index)[i]};
    case I32: return from_signed(static_cast<const int*>(args.index)[i]);
    case U32: return {false, static_cast<const u32*>(args.index)[i]};
    case I64: return from_signed(static_cast<const long long*>(args.index)[i]);
    default:  return {false, static_cast<const u64*>(args.index)[i]};
  }
}

enum Where { ROW, FILLED, OUTSIDE };

// The index rule: the table in src/gather/bounds.rs, which `Bounds::place` there is for the CPU.
__device__ __forceinline__ Where place(const GatherArgs& args, Index index, u64* row) {
  const u64 m = index.magnitude, n = args.rows;
  const bool negative = index.negative;
  if (args.mode == WRAP || args.mode == CLIP) {
    if (n == 0) return OUTSIDE;
    if (args.mode == CLIP) {
      *row = negative ? 0 : (m < n ? m : n - 1);
    } else {
      const u64 r = m % n;
      *row = negative && r != 0 ? n - r : r;
    }
    return ROW;
  }
  if (!negative && m < n) {
    *row = m;
    return ROW;
  }
  if (negative && m <= n && args.wrap_negative) {
    *row = n - m;
    return ROW;
  }
  return args.mode == FILL ? FILLED : OUTSIDE;
}

// Access t of the result, where a row is one access (SINGLE) or `units` of them. Returns whether
// there is a value to write.
template <typename Unit, bool SINGLE>
__device__ __forceinline__ bool load_unit(const GatherArgs& args, u64 t, Unit* value) {
  const u64 i = SINGLE ? t : __umul64hi(t, args.units_magic) >> args.units_shift;
  const u64 column = SINGLE ? 0 : t - i * args.units;
  u64 row = 0;
  switch (place(args, load_index(args, i), &row)) {
    case ROW:
      *value = static_cast<const Unit*>(args.source)[SINGLE ? row : row * args.units + column];
      return true;
    case FILLED:
      *value = *reinterpret_cast<const Unit*>(&args.fill);
      return true;
    default:
      // One report a row is enough.
      if (column == 0) atomicMin(args.first_outside, i);
      return false;
  }
}

// The accesses of the result, spread flat over the threads: neighbours in a warp write neighbours
// in memory whatever the row size. PER_THREAD loads are in flight before the first is stored.
template <typename Unit, bool SINGLE, int PER_THREAD>
__device__ __forceinline__ void gather(const GatherArgs& args) {
  const u64 total = SINGLE ? args.length : args.length * args.units;
  const u64 tile = static_cast<u64>(blockDim.x) * PER_THREAD;
  for (u64 start = blockIdx.x * tile; start < total; start += gridDim.x * tile) {
    Unit values[PER_THREAD];
    bool write[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
      const u64 t = start + static_cast<u64>(k) * blockDim.x + threadIdx.x;
      write[k] = t < total && load_unit<Unit, SINGLE>(args, t, &values[k]);
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
      const u64 t = start + static_cast<u64>(k) * blockDim.x + threadIdx.x;
      if (write[k]) static_cast<Unit*>(args.out)[t] = values[k];
    }
  }
}

// gather_row_N: a row is one access of N bytes. gather_rows_N: a row is several. The host picks
// the widest N that divides the row size and both addresses.
#define KERNELS(N, Unit)                                                                  \
  extern "C" __global__ void __launch_bounds__(256) gather_row_##N(const GatherArgs args) {  \
    gather<Unit, true, 1>(args);                                                          \
  }                                                                                       \
  extern "C" __global__ void __launch_bounds__(256) gather_rows_##N(const GatherArgs args) { \
    gather<Unit, false, 2>(args);                                                         \
  }

KERNELS(1, unsigned char)
KERNELS(2, unsigned short)
KERNELS(4, u32)
KERNELS(8, uint2)
KERNELS(16, uint4)
