export type {
  CudaDevice,
  CudaMemory,
  CudaStatus,
  GatherOptions,
  IndexArray,
  SameClass,
  SourceArray,
} from './binding.js'
export { cudaGather, cudaStatus } from './binding.js'
