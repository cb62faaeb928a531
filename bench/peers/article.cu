// The steps of the article that cugather grew out of, for every call: allocate three arrays on the
// device, copy all three in, gather by blocks of 1,024 threads, copy the result out, free, and reset
// the device. Timed with the reset and without it.
//
//   article SOURCE INDEX EXPECTED ROUNDS
//
// The files hold float32, int32 and the bits that are right. Prints {"reset": [ms, …], "kept": [ms,
// …], "equal": true}, with the wall-clock times of whole calls.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

static void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

__global__ void gather(const float* source, const int* index, float* out, int length) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < length) out[i] = source[index[i]];
}

template <typename T>
static std::vector<T> read(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path);
    std::exit(1);
  }
  std::vector<T> values(static_cast<size_t>(file.tellg()) / sizeof(T));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

static void call(const std::vector<float>& source, const std::vector<int>& index,
                 std::vector<float>& out, bool reset) {
  const size_t source_bytes = source.size() * sizeof(float), bytes = index.size() * sizeof(int);
  float *device_source, *device_out;
  int* device_index;
  CHECK(cudaMalloc(&device_source, source_bytes));
  CHECK(cudaMalloc(&device_index, bytes));
  CHECK(cudaMalloc(&device_out, bytes));
  CHECK(cudaMemcpy(device_source, source.data(), source_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_index, index.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_out, out.data(), bytes, cudaMemcpyHostToDevice));
  const int length = static_cast<int>(index.size());
  gather<<<(length + 1023) / 1024, 1024>>>(device_source, device_index, device_out, length);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device_source));
  CHECK(cudaFree(device_index));
  CHECK(cudaFree(device_out));
  if (reset) CHECK(cudaDeviceReset());
}

int main(int count, char** arguments) {
  if (count != 5) {
    std::fprintf(stderr, "article SOURCE INDEX EXPECTED ROUNDS\n");
    return 2;
  }
  const auto source = read<float>(arguments[1]);
  const auto index = read<int>(arguments[2]);
  const auto expected = read<unsigned>(arguments[3]);
  const int rounds = std::atoi(arguments[4]);
  std::vector<float> out(index.size());
  bool equal = true;
  std::string json = "{";
  for (const bool reset : {true, false}) {
    json += reset ? "\"reset\": [" : ", \"kept\": [";
    // One more, which is not counted: it makes the context, or finds it made.
    for (int round = 0; round <= rounds; round++) {
      std::memset(out.data(), 0xff, out.size() * sizeof(float));
      const auto start = std::chrono::steady_clock::now();
      call(source, index, out, reset);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      equal = equal && std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)) == 0;
      if (round > 0) json += (round > 1 ? ", " : "") + std::to_string(took.count());
    }
    json += "]";
  }
  std::printf("%s, \"equal\": %s}\n", json.c_str(), equal ? "true" : "false");
}
