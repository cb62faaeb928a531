// Just enough of CUDA for kernels/gather.cu to compile as C++ and run on the host, one thread after
// the other.
#pragma once

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct uint2 {
  unsigned x, y;
};

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)

// The place of the thread that is running.
inline thread_local Dim3 gridDim, blockDim, blockIdx, threadIdx;

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

inline unsigned long long atomicMin(unsigned long long* address, unsigned long long value) {
  const unsigned long long old = *address;
  if (value < old) *address = value;
  return old;
}

inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }

#include "../../../kernels/gather.cu"

using Kernel = void (*)(const GatherArgs);

struct KernelEntry {
  const char* name;
  Kernel kernel;
};

#define ENTRIES(N) {"gather_row_" #N, gather_row_##N}, {"gather_rows_" #N, gather_rows_##N}
inline constexpr KernelEntry kernel_table[] = {ENTRIES(1), ENTRIES(2), ENTRIES(4), ENTRIES(8),
                                               ENTRIES(16)};
#undef ENTRIES

inline void run_on_host(Kernel kernel, unsigned blocks, unsigned threads, const GatherArgs& args) {
  gridDim.x = blocks;
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
    for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) kernel(args);
  }
}
