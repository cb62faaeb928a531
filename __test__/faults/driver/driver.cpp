// A stand-in for libcuda.so.1, for tests alone: device memory is host memory, the kernels are those
// of kernels/gather.cu run on the host, and every handle, pointer and size handed to it is checked.
//
// It is stricter than a driver may be. A copy and a launch only note what to do; it is done
// when the stream is waited for, so that memory let go too early, or a wait left out, shows. A misuse
// ends the process with a message.
//
// A test steers and watches it through a control block in the file that CUGATHER_STAND_IN names
// (../control.js): which call is to fail and how, how often each function was called, what is alive.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "cuda_on_host.h"

namespace {

using Result = int;
enum : Result {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  NOT_FOUND = 500,
  NOT_READY = 600,
};

enum Function {
#define FUNCTION(name) F_##name,
#include "functions.h"
#undef FUNCTION
  FUNCTION_COUNT
};

const char* const function_names[] = {
#define FUNCTION(name) #name,
#include "functions.h"
#undef FUNCTION
};

// The control block: little-endian 32-bit integers, then 64-bit ones, at fixed places.
struct Control {
  int32_t fail_function;  // the place of a name in functions.h, or -1
  int32_t fail_call;      // 1: the next call of it, 2: the one after that, …
  int32_t fail_code;
  int32_t fail_sticky;  // 1: from then on every call fails so, as after an illegal address
  int32_t injected;     // how many calls have been made to fail
  int32_t reserved[3];
  int64_t allocations, bytes, page_locked, page_locked_bytes, streams, events, contexts, modules, pending, peak_bytes;
  int32_t calls[64];
};
static_assert(FUNCTION_COUNT <= 64);

struct Block {
  bool on_host;  // page-locked, and as good for a kernel
  size_t bytes;
  void* mapping;
  size_t mapping_bytes;
};

struct Work {
  std::function<void()> run;
  std::thread::id by;
};

struct Stream {
  std::deque<Work> queue;
  bool is_slow = false;  // whether the work that is queued is done only when it is waited for
};

struct Event {
  Stream* stream = nullptr;
  size_t position = 0;  // work of the stream that came before the record
};

struct Module {};
struct Context {
  int retained = 0;
};

std::mutex mutex;
Control local_control{};
Control* control = &local_control;
Result sticky = SUCCESS;
bool initialised = false;
int device_count = 1;
size_t capacity = size_t{8} << 30;
Context contexts[8];
thread_local Context* current = nullptr;
std::map<uint64_t, Block> blocks;
std::map<Stream*, std::unique_ptr<Stream>> streams;
std::map<Stream*, size_t> finished;  // work of each stream that is done
std::map<Event*, std::unique_ptr<Event>> events;
std::map<Module*, std::unique_ptr<Module>> modules;

[[noreturn]] __attribute__((format(printf, 1, 2))) void misuse(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("stand-in driver: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  std::abort();
}

void attach_control() {
  static bool attached = false;
  if (attached) return;
  attached = true;
  local_control.fail_function = -1;
  if (const char* count = std::getenv("CUGATHER_STAND_IN_DEVICES")) device_count = std::atoi(count);
  if (const char* bytes = std::getenv("CUGATHER_STAND_IN_MEMORY")) capacity = std::strtoull(bytes, nullptr, 10);
  const char* path = std::getenv("CUGATHER_STAND_IN");
  if (!path) return;
  const int file = open(path, O_RDWR);
  void* shared = file < 0 ? MAP_FAILED
                          : mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) misuse("cannot map the control block %s", path);
  close(file);
  control = static_cast<Control*>(shared);
}

void count_alive() {
  int64_t bytes = 0, count = 0, locked_bytes = 0, locked_count = 0;
  for (const auto& [address, block] : blocks) {
    (block.on_host ? locked_bytes : bytes) += static_cast<int64_t>(block.bytes);
    (block.on_host ? locked_count : count) += 1;
  }
  int64_t pending = 0, retained = 0;
  for (const auto& [key, stream] : streams) pending += static_cast<int64_t>(stream->queue.size());
  for (const Context& context : contexts) retained += context.retained;
  control->allocations = count;
  control->bytes = bytes;
  control->page_locked = locked_count;
  control->page_locked_bytes = locked_bytes;
  if (control->bytes > control->peak_bytes) control->peak_bytes = control->bytes;
  control->streams = static_cast<int64_t>(streams.size());
  control->events = static_cast<int64_t>(events.size());
  control->modules = static_cast<int64_t>(modules.size());
  control->contexts = retained;
  control->pending = pending;
}

// Holds the lock for one call and, where a fault is due, its result.
class Call {
 public:
  explicit Call(Function function) : lock_(mutex) {
    attach_control();
    control->calls[function]++;
    if (control->fail_function == function && control->fail_call > 0 && --control->fail_call == 0) {
      control->injected++;
      result = control->fail_code;
      if (control->fail_sticky) {
        sticky = result;
        // What ran on the device has stopped with it.
        for (auto& [key, stream] : streams) drop(*stream);
      }
    } else if (sticky != SUCCESS && function != F_cuInit && function != F_cuDriverGetVersion) {
      result = sticky;
    } else if (!initialised && function != F_cuInit && function != F_cuDriverGetVersion) {
      misuse("%s before cuInit", function_names[function]);
    }
  }
  ~Call() { count_alive(); }

  Result result = SUCCESS;

  static void drop(Stream& stream) {
    finished[&stream] += stream.queue.size();
    stream.queue.clear();
  }

 private:
  std::lock_guard<std::mutex> lock_;
};

#define ENTER(name)      \
  Call call(F_##name);   \
  if (call.result != SUCCESS) return call.result

void need_context(const char* function) {
  if (!current || current->retained == 0) misuse("%s without a current context", function);
}

Stream& known(Stream* stream) {
  if (!streams.count(stream)) misuse("no such stream: %p", static_cast<void*>(stream));
  return *stream;
}

void check_range(const char* what, uint64_t address, uint64_t bytes) {
  auto found = blocks.upper_bound(address);
  if (found == blocks.begin()) misuse("%s: %llu bytes at %#llx are in no block", what, (unsigned long long)bytes, (unsigned long long)address);
  --found;
  const uint64_t offset = address - found->first;
  if (offset > found->second.bytes || bytes > found->second.bytes - offset)
    misuse("%s: %llu bytes at offset %llu of a block of %zu", what, (unsigned long long)bytes, (unsigned long long)offset, found->second.bytes);
}

void enqueue(Stream* stream, std::function<void()> run) {
  Stream& of = known(stream);
  if (of.queue.empty()) of.is_slow = !of.is_slow;
  of.queue.push_back({std::move(run), std::this_thread::get_id()});
}

// Does the work of a stream up to `position`, counted from its creation.
void run_until(Stream& stream, size_t position) {
  size_t& done = finished[&stream];
  while (done < position && !stream.queue.empty()) {
    stream.queue.front().run();
    stream.queue.pop_front();
    done++;
  }
}

void run_all(Stream& stream) { run_until(stream, SIZE_MAX); }

void no_work_left_by_this_thread(const char* function) {
  for (const auto& [key, stream] : streams) {
    for (const Work& work : stream->queue) {
      if (work.by == std::this_thread::get_id())
        misuse("%s by a thread that has begun work that nobody waited for", function);
    }
  }
}

struct AtExit {
  ~AtExit() {
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto& [key, stream] : streams) {
      if (!stream->queue.empty()) misuse("the process ended with work that nobody waited for");
    }
  }
} at_exit;

// Memory that begins on a page, and ends as near as 16-byte alignment lets it before one that no
// access is allowed to: a kernel that runs past a block crashes. Fresh memory is not zeros.
Block make_block(size_t bytes, uint64_t* address) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t whole = (bytes + page - 1) / page * page;
  void* mapping = mmap(nullptr, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return {false, 0, nullptr, 0};
  mprotect(static_cast<char*>(mapping) + whole, page, PROT_NONE);
  // The driver's blocks are aligned to 256 bytes.
  char* start = static_cast<char*>(mapping) + (whole - bytes) / 256 * 256;
  std::memset(start, 0xa5, bytes < (size_t{1} << 20) ? bytes : size_t{1} << 20);
  *address = reinterpret_cast<uint64_t>(start);
  return {false, bytes, mapping, whole + page};
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Result cuInit(unsigned) {
  ENTER(cuInit);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible && (visible[0] < '0' || visible[0] > '9' || std::atoi(visible) >= device_count))
    return NO_DEVICE;
  initialised = true;
  return SUCCESS;
}

EXPORT Result cuGetErrorName(int code, const char** name) {
  switch (code) {
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return SUCCESS;
    case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; return SUCCESS;
    case 34: *name = "CUDA_ERROR_STUB_LIBRARY"; return SUCCESS;
    case 222: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return SUCCESS;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return SUCCESS;
    default: *name = nullptr; return INVALID_VALUE;
  }
}

EXPORT Result cuDriverGetVersion(int* version) {
  ENTER(cuDriverGetVersion);
  *version = 13000;
  return SUCCESS;
}

EXPORT Result cuDeviceGetCount(int* count) {
  ENTER(cuDeviceGetCount);
  *count = device_count;
  return SUCCESS;
}

EXPORT Result cuDeviceGet(int* device, int ordinal) {
  ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= device_count) return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}

EXPORT Result cuDeviceGetName(char* name, int length, int) {
  ENTER(cuDeviceGetName);
  std::snprintf(name, static_cast<size_t>(length), "Stand-in");
  return SUCCESS;
}

EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, int) {
  ENTER(cuDeviceTotalMem_v2);
  *bytes = capacity;
  return SUCCESS;
}

EXPORT Result cuDeviceGetAttribute(int* value, int, int) {
  ENTER(cuDeviceGetAttribute);
  *value = 9;
  return SUCCESS;
}

EXPORT Result cuDevicePrimaryCtxRetain(Context** context, int device) {
  ENTER(cuDevicePrimaryCtxRetain);
  contexts[device].retained++;
  *context = &contexts[device];
  return SUCCESS;
}

EXPORT Result cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(cuDevicePrimaryCtxRelease_v2);
  if (contexts[device].retained-- == 0) misuse("a context is released more often than retained");
  return SUCCESS;
}

EXPORT Result cuCtxSetCurrent(Context* context) {
  ENTER(cuCtxSetCurrent);
  if (context && context->retained == 0) misuse("cuCtxSetCurrent of a context that is not retained");
  current = context;
  return SUCCESS;
}

EXPORT Result cuCtxSynchronize() {
  ENTER(cuCtxSynchronize);
  need_context("cuCtxSynchronize");
  for (auto& [key, stream] : streams) run_all(*stream);
  return SUCCESS;
}

EXPORT Result cuModuleLoadData(Module** module, const void* image) {
  ENTER(cuModuleLoadData);
  need_context("cuModuleLoadData");
  if (!std::strstr(static_cast<const char*>(image), ".version 8.0\n")) misuse("the image is not PTX 8.0");
  auto made = std::make_unique<Module>();
  *module = made.get();
  modules.emplace(made.get(), std::move(made));
  return SUCCESS;
}

EXPORT Result cuModuleUnload(Module* module) {
  ENTER(cuModuleUnload);
  if (modules.erase(module) == 0) misuse("no such module");
  return SUCCESS;
}

EXPORT Result cuModuleGetFunction(const KernelEntry** function, Module* module, const char* name) {
  ENTER(cuModuleGetFunction);
  if (!modules.count(module)) misuse("no such module");
  for (const KernelEntry& entry : kernel_table) {
    if (std::strcmp(entry.name, name) == 0) {
      *function = &entry;
      return SUCCESS;
    }
  }
  return NOT_FOUND;
}

EXPORT Result cuStreamCreate(Stream** stream, unsigned) {
  ENTER(cuStreamCreate);
  need_context("cuStreamCreate");
  auto made = std::make_unique<Stream>();
  *stream = made.get();
  finished[made.get()] = 0;
  streams.emplace(made.get(), std::move(made));
  return SUCCESS;
}

EXPORT Result cuStreamDestroy_v2(Stream* stream) {
  ENTER(cuStreamDestroy_v2);
  run_all(known(stream));
  finished.erase(stream);
  streams.erase(stream);
  return SUCCESS;
}

// Every other batch of work is done at the first look, the others only when they are waited for: so
// that both ways to wait are gone.
EXPORT Result cuStreamQuery(Stream* stream) {
  ENTER(cuStreamQuery);
  Stream& of = known(stream);
  if (of.queue.empty()) return SUCCESS;
  if (of.is_slow) return NOT_READY;
  run_all(of);
  return NOT_READY;
}

EXPORT Result cuEventCreate(Event** event, unsigned) {
  ENTER(cuEventCreate);
  need_context("cuEventCreate");
  auto made = std::make_unique<Event>();
  *event = made.get();
  events.emplace(made.get(), std::move(made));
  return SUCCESS;
}

EXPORT Result cuEventDestroy_v2(Event* event) {
  ENTER(cuEventDestroy_v2);
  if (events.erase(event) == 0) misuse("no such event");
  return SUCCESS;
}

EXPORT Result cuEventRecord(Event* event, Stream* stream) {
  ENTER(cuEventRecord);
  if (!events.count(event)) misuse("no such event");
  event->stream = stream;
  event->position = finished[stream] + known(stream).queue.size();
  return SUCCESS;
}

EXPORT Result cuEventSynchronize(Event* event) {
  ENTER(cuEventSynchronize);
  if (!events.count(event)) misuse("no such event");
  if (event->stream) run_until(known(event->stream), event->position);
  return SUCCESS;
}

EXPORT Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER(cuMemGetInfo_v2);
  need_context("cuMemGetInfo");
  *free = capacity - static_cast<size_t>(control->bytes);
  *total = capacity;
  return SUCCESS;
}

EXPORT Result cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  ENTER(cuMemAlloc_v2);
  need_context("cuMemAlloc");
  if (bytes == 0) return INVALID_VALUE;
  if (bytes > capacity - static_cast<size_t>(control->bytes)) return OUT_OF_MEMORY;
  const Block block = make_block(bytes, address);
  if (!block.mapping) return OUT_OF_MEMORY;
  blocks[*address] = block;
  return SUCCESS;
}

static Result free_block(const char* function, uint64_t address, bool on_host) {
  need_context(function);
  const auto found = blocks.find(address);
  if (found == blocks.end() || found->second.on_host != on_host)
    misuse("%s of %#llx, which is no block of it", function, (unsigned long long)address);
  no_work_left_by_this_thread(function);
  munmap(found->second.mapping, found->second.mapping_bytes);
  blocks.erase(found);
  return SUCCESS;
}

EXPORT Result cuMemFree_v2(uint64_t address) {
  ENTER(cuMemFree_v2);
  return free_block("cuMemFree", address, false);
}

EXPORT Result cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  ENTER(cuMemHostAlloc);
  need_context("cuMemHostAlloc");
  if (bytes == 0) return INVALID_VALUE;
  // Every context, and kernels, are to have it: PORTABLE and DEVICEMAP.
  if (flags != 3) misuse("cuMemHostAlloc with flags %u", flags);
  if (bytes > capacity) return OUT_OF_MEMORY;
  uint64_t address;
  Block block = make_block(bytes, &address);
  if (!block.mapping) return OUT_OF_MEMORY;
  block.on_host = true;
  blocks[address] = block;
  *memory = reinterpret_cast<void*>(address);
  return SUCCESS;
}

EXPORT Result cuMemFreeHost(void* memory) {
  ENTER(cuMemFreeHost);
  return free_block("cuMemFreeHost", reinterpret_cast<uint64_t>(memory), true);
}

EXPORT Result cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
  ENTER(cuMemcpyHtoDAsync_v2);
  need_context("cuMemcpyHtoDAsync");
  check_range("cuMemcpyHtoDAsync", to, bytes);
  enqueue(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return SUCCESS;
}

EXPORT Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
  ENTER(cuMemcpyDtoDAsync_v2);
  need_context("cuMemcpyDtoDAsync");
  check_range("cuMemcpyDtoDAsync", from, bytes);
  check_range("cuMemcpyDtoDAsync", to, bytes);
  enqueue(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
  return SUCCESS;
}

EXPORT Result cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
  ENTER(cuMemcpyDtoHAsync_v2);
  need_context("cuMemcpyDtoHAsync");
  check_range("cuMemcpyDtoHAsync", from, bytes);
  enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
  return SUCCESS;
}

EXPORT Result cuLaunchKernel(const KernelEntry* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             Stream* stream, void** parameters, void** extra) {
  ENTER(cuLaunchKernel);
  need_context("cuLaunchKernel");
  if (function < kernel_table || function >= std::end(kernel_table)) misuse("no such kernel");
  if (modules.empty()) misuse("the kernel's module is not loaded");
  if (grid_x == 0 || grid_x > 2147483647u || grid_y != 1 || grid_z != 1) misuse("a grid of %u × %u × %u", grid_x, grid_y, grid_z);
  if (block_x == 0 || block_x > 1024 || block_y != 1 || block_z != 1 || shared != 0 || extra) misuse("a launch that makes no sense here");
  const GatherArgs args = *static_cast<const GatherArgs*>(parameters[0]);
  const uint64_t width = std::strtoull(std::strrchr(function->name, '_') + 1, nullptr, 10);
  static const uint64_t index_bytes[] = {1, 1, 2, 2, 4, 4, 8, 8};
  const auto address = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer); };
  if (args.rows * args.units > 0) check_range("source", address(args.source), args.rows * args.units * width);
  check_range("index", address(args.index), args.length * index_bytes[args.index_type]);
  check_range("out", address(args.out), args.length * args.units * width);
  check_range("first_outside", address(args.first_outside), 8);
  if (address(args.source) % width || address(args.out) % width) misuse("accesses of %llu bytes that are not aligned", (unsigned long long)width);
  enqueue(stream, [=] { run_on_host(function->kernel, grid_x, block_x, args); });
  return SUCCESS;
}
