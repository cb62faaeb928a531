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

// What a launch works on: `GatherArgs` in src/cuda/kernels.rs, field by field.
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

// Index i as 64 bits, its sign extended where it has one. The type is the same for every thread of
// a launch, so that the switch costs no divergence.
template <int N>
__device__ __forceinline__ void load_indices(const GatherArgs& args, const u64 (&at)[N],
                                             u64 (&index)[N]) {
#define LOAD(Type) \
  for (int k = 0; k < N; k++) index[k] = static_cast<u64>(static_cast<const Type*>(args.index)[at[k]])
  switch (args.index_type) {
    case I8:  LOAD(signed char); break;
    case U8:  LOAD(unsigned char); break;
    case I16: LOAD(short); break;
    case U16: LOAD(unsigned short); break;
    case I32: LOAD(int); break;
    case U32: LOAD(u32); break;
    default:  LOAD(u64); break;
  }
#undef LOAD
}

enum Where { ROW, FILLED, OUTSIDE };

// The index rule: the table in src/gather/bounds.rs, which `Bounds::place` there is for the CPU.
// `bits` is an index from load_indices; its sign and magnitude serve all eight types.
__device__ __forceinline__ Where place(const GatherArgs& args, u64 bits, u64* row) {
  const bool negative = args.index_type != U64 && static_cast<long long>(bits) < 0;
  const u64 m = negative ? 0 - bits : bits;
  const u64 n = args.rows;
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
  *row = negative ? n - m : m;
  if (negative ? m <= n && args.wrap_negative : m < n) return ROW;
  return args.mode == FILL ? FILLED : OUTSIDE;
}

// The accesses of the result, spread flat over the threads: neighbours in a warp write neighbours
// in memory whatever the row size. A row is one access (SINGLE) or `units` of them. Each thread has
// N at a time, stage by stage, so that N loads are in flight before the first is needed.
template <typename Unit, bool SINGLE, int N>
__device__ __forceinline__ void gather(const GatherArgs& args) {
  const u64 total = SINGLE ? args.length : args.length * args.units;
  const u64 tile = static_cast<u64>(blockDim.x) * N;
  for (u64 start = blockIdx.x * tile + threadIdx.x; start < total; start += gridDim.x * tile) {
    u64 row_of_out[N], column[N], index[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
      // Past the end, the last access again: loading it twice is harmless, storing it is skipped.
      const u64 t = min(start + static_cast<u64>(k) * blockDim.x, total - 1);
      row_of_out[k] = SINGLE ? t : __umul64hi(t, args.units_magic) >> args.units_shift;
      column[k] = SINGLE ? 0 : t - row_of_out[k] * args.units;
    }
    load_indices(args, row_of_out, index);
    Where where[N];
    Unit value[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
      u64 row;
      where[k] = place(args, index[k], &row);
      const Unit* source = static_cast<const Unit*>(args.source);
      if (where[k] == ROW) value[k] = source[SINGLE ? row : row * args.units + column[k]];
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
      const u64 t = start + static_cast<u64>(k) * blockDim.x;
      if (t >= total) break;
      if (where[k] == OUTSIDE) {
        // One report a row is enough.
        if (column[k] == 0) atomicMin(args.first_outside, row_of_out[k]);
        continue;
      }
      if (where[k] == FILLED) value[k] = *reinterpret_cast<const Unit*>(&args.fill);
      static_cast<Unit*>(args.out)[t] = value[k];
    }
  }
}

// gather_row_N: a row is one access of N bytes. gather_rows_N: a row is several, and a thread has
// four at a time: measured on an H200 against one and two, with one Mi rows of 64 to 1,024 bytes.
// The host picks the widest N that divides the row size and both addresses.
#define KERNELS(N, Unit)                                                                    \
  extern "C" __global__ void __launch_bounds__(256, 4) gather_row_##N(const GatherArgs args) {  \
    gather<Unit, true, 1>(args);                                                            \
  }                                                                                         \
  extern "C" __global__ void __launch_bounds__(256, 4) gather_rows_##N(const GatherArgs args) { \
    gather<Unit, false, 4>(args);                                                           \
  }

KERNELS(1, unsigned char)
KERNELS(2, unsigned short)
KERNELS(4, u32)
KERNELS(8, uint2)
KERNELS(16, uint4)
