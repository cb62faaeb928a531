export type {
  CudaDevice,
  CudaMemory,
  CudaStatus,
  DeviceArrayOptions,
  Explanation,
  GatherOptions,
  GatherResult,
  HeldMemory,
  IndexArray,
  MemoryStatus,
  SameClass,
  SourceArray,
} from './binding.js'
export { cudaGather, cudaStatus, DeviceArray, explain, pinned, setMemoryLimits } from './binding.js'
