import { cudaGather, DeviceArray } from 'cugather'

export const gather = async (): Promise<Float32Array<ArrayBuffer>> => {
  const array: DeviceArray<Float32Array> = await DeviceArray.from(Float32Array.of(1, 2))
  await array.gather(Int32Array.of(1))
  // @ts-expect-error: a float array is no index, and where the types are lost anything is.
  await cudaGather(Float32Array.of(1), Float32Array.of(0))
  return cudaGather(Float32Array.of(1, 2), Int32Array.of(1))
}
