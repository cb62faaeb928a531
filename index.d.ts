export type {
  CudaDevice,
  CudaMemory,
  CudaStatus,
  DeviceArrayOptions,
  Explanation,
  GatherOptions,
  GatherResult,
  IndexArray,
  SameClass,
  SourceArray,
} from './binding.js'
export { cudaGather, cudaStatus, DeviceArray, explain } from './binding.js'
