// The results that each driver function can give, by CUDA's numbers.

const OUT_OF_MEMORY = 2
const NOT_INITIALIZED = 3
const STUB_LIBRARY = 34
const INSUFFICIENT_DRIVER = 35
const DEVICE_UNAVAILABLE = 46
const NO_DEVICE = 100
const INVALID_DEVICE = 101
const INVALID_IMAGE = 200
const NO_BINARY_FOR_GPU = 209
const INVALID_PTX = 218
const JIT_COMPILER_NOT_FOUND = 221
const UNSUPPORTED_PTX_VERSION = 222
const JIT_COMPILATION_DISABLED = 223
const NOT_FOUND = 500
const LAUNCH_OUT_OF_RESOURCES = 701
const SYSTEM_NOT_READY = 802
const SYSTEM_DRIVER_MISMATCH = 803
const COMPAT_NOT_SUPPORTED_ON_DEVICE = 804
const UNKNOWN = 999
// What a driver newer than this addon may give.
const OF_A_NEWER_DRIVER = 1234

const ILLEGAL_ADDRESS = 700
const LAUNCH_FAILED = 719

const always = [UNKNOWN, OF_A_NEWER_DRIVER]
const initialising = [
  NOT_INITIALIZED,
  STUB_LIBRARY,
  INSUFFICIENT_DRIVER,
  NO_DEVICE,
  SYSTEM_NOT_READY,
  SYSTEM_DRIVER_MISMATCH,
  COMPAT_NOT_SUPPORTED_ON_DEVICE,
]

const own = {
  cuInit: initialising,
  cuDriverGetVersion: initialising,
  cuDeviceGetCount: initialising,
  cuDeviceGet: [INVALID_DEVICE, NOT_INITIALIZED],
  cuDevicePrimaryCtxRetain: [OUT_OF_MEMORY, INVALID_DEVICE, DEVICE_UNAVAILABLE],
  cuModuleLoadData: [
    OUT_OF_MEMORY,
    INVALID_IMAGE,
    NO_BINARY_FOR_GPU,
    INVALID_PTX,
    JIT_COMPILER_NOT_FOUND,
    UNSUPPORTED_PTX_VERSION,
    JIT_COMPILATION_DISABLED,
  ],
  cuModuleGetFunction: [NOT_FOUND],
  cuStreamCreate: [OUT_OF_MEMORY],
  cuEventCreate: [OUT_OF_MEMORY],
  cuMemAlloc_v2: [OUT_OF_MEMORY],
  cuMemHostAlloc: [OUT_OF_MEMORY],
  cuLaunchKernel: [OUT_OF_MEMORY, LAUNCH_OUT_OF_RESOURCES],
}

/** Results after which the next call of the driver works. */
const codesThatPass = (name) => [...(own[name] ?? []), ...always]

/** Results after which every call gives the same, until the process ends. */
const codesThatStay = [ILLEGAL_ADDRESS, LAUNCH_FAILED]

/** Functions that can meet the death of a context: those that come after it was made. */
const meetsDeath = (name) =>
  ![
    'cuInit',
    'cuDriverGetVersion',
    'cuDeviceGetCount',
    'cuDeviceGet',
    'cuDevicePrimaryCtxRetain',
  ].includes(name)

module.exports = { codesThatPass, codesThatStay, meetsDeath }
