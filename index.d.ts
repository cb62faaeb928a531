export type {
  CudaDevice,
  CudaMemory,
  CudaStatus,
  Explanation,
  GatherOptions,
  IndexArray,
  SameClass,
  SourceArray,
} from './binding.js'
export { cudaGather, cudaStatus, explain } from './binding.js'
