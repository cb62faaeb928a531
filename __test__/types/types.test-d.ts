// What must compile, and behind each @ts-expect-error what must not. npm run test:types

import {
  type CudaStatus,
  cudaGather,
  cudaStatus,
  DeviceArray,
  type Explanation,
  explain,
  type GatherOptions,
  type IndexArray,
  pinned,
  type SourceArray,
  setMemoryLimits,
} from '../../index.js'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const is = <A, B>(_same: Same<A, B>) => {}

const index = new Int32Array(1)

// The class goes through, on a buffer of its own.
async function classes() {
  const f32 = await cudaGather(new Float32Array(1), index)
  is<typeof f32, Float32Array<ArrayBuffer>>(true)
  const f64 = await cudaGather(new Float64Array(1), index)
  is<typeof f64, Float64Array<ArrayBuffer>>(true)
  const i8 = await cudaGather(new Int8Array(1), index)
  is<typeof i8, Int8Array<ArrayBuffer>>(true)
  const clamped = await cudaGather(new Uint8ClampedArray(1), index)
  is<typeof clamped, Uint8ClampedArray<ArrayBuffer>>(true)
  const big = await cudaGather(new BigUint64Array(1), index)
  is<typeof big, BigUint64Array<ArrayBuffer>>(true)
  const shared = await cudaGather(new Float32Array(new SharedArrayBuffer(4)), index)
  is<typeof shared, Float32Array<ArrayBuffer>>(true)
  const buffer = await cudaGather(Buffer.from('a'), index)
  is<typeof buffer, Uint8Array<ArrayBuffer>>(true)
  const either = await cudaGather(new Float32Array(1) as Float32Array | Int8Array, index)
  is<typeof either, Float32Array<ArrayBuffer> | Int8Array<ArrayBuffer>>(true)
}

// Given an out, its own type comes back.
async function outs() {
  const out = new Float32Array(new SharedArrayBuffer(4))
  const result = await cudaGather(new Float32Array(1), index, { out })
  is<typeof result, Float32Array<SharedArrayBuffer>>(true)
  // @ts-expect-error an out of another class
  cudaGather(new Float32Array(1), index, { out: new Float64Array(1) })
}

// Every integer class is an index.
const indices: IndexArray[] = [
  new Int8Array(1),
  new Uint8Array(1),
  new Uint8ClampedArray(1),
  new Int16Array(1),
  new Uint16Array(1),
  index,
  new Uint32Array(1),
  new BigInt64Array(1),
  new BigUint64Array(1),
]
for (const each of indices) cudaGather(new Float32Array(1), each)
// @ts-expect-error floats are no index
cudaGather(new Float32Array(1), new Float32Array(1))
// @ts-expect-error a plain array is no index
cudaGather(new Float32Array(1), [0])
// @ts-expect-error a plain array is no source
cudaGather([1, 2], index)
// @ts-expect-error a DataView is no source
cudaGather(new DataView(new ArrayBuffer(4)), index)
// @ts-expect-error an index is required
cudaGather(new Float32Array(1))

// Options.
cudaGather(new Float32Array(4), index, {
  mode: 'fill',
  fillValue: -1,
  wrapNegative: false,
  rowLength: 2,
  device: 'cuda:1',
})
cudaGather(new BigInt64Array(1), index, { mode: 'fill', fillValue: -1n })
// @ts-expect-error a bigint for a float
cudaGather(new Float32Array(1), index, { mode: 'fill', fillValue: 1n })
// @ts-expect-error a number for a bigint class
cudaGather(new BigInt64Array(1), index, { mode: 'fill', fillValue: 1 })
// @ts-expect-error an unknown mode
cudaGather(new Float32Array(1), index, { mode: 'nearest' })
// @ts-expect-error an unknown option
cudaGather(new Float32Array(1), index, { axis: 1 })
// @ts-expect-error an unknown device
cudaGather(new Float32Array(1), index, { device: 'gpu' })

// What cudaStatus and explain say of a device, the option takes; undefined is as good as absent.
async function devices() {
  const [first] = (await cudaStatus()).devices
  const { device } = await explain(new Float32Array(1), index)
  await cudaGather(new Float32Array(1), index, { device: first?.device, out: undefined })
  await cudaGather(new Float32Array(1), index, { device, mode: undefined })
}

// A DeviceArray carries its class.
async function resident() {
  const array = await DeviceArray.from(new Float64Array(4), { rowLength: 2, device: 'cuda' })
  const back = await array.toHost()
  is<typeof back, Float64Array<ArrayBuffer>>(true)
  const rows = await array.gather(index)
  is<typeof rows, Float64Array<ArrayBuffer>>(true)
  const stays = await array.gather(index, { result: 'device' })
  const again = await cudaGather(stays, await DeviceArray.from(index))
  is<typeof again, Float64Array<ArrayBuffer>>(true)
  await array.update(1, new Float64Array(1))
  // @ts-expect-error another class
  await array.update(1, new Float32Array(1))
  // @ts-expect-error an index of floats
  await cudaGather(new Float32Array(1), array)
  // @ts-expect-error not made by hand
  new DeviceArray()
  array.dispose()
  array[Symbol.dispose]()
}

// Options in a variable name the source's class, and nothing more.
async function optionsApart() {
  const options: GatherOptions<Float32Array> = { mode: 'clip' }
  const result = await cudaGather(new Float32Array(1), index, options)
  is<typeof result, Float32Array>(true)
}

// Code over any class.
async function generic<S extends SourceArray>(source: S, options: GatherOptions<S>) {
  return cudaGather(source, index, options)
}

// Page-locked arrays are of the class that was asked for; signals are Node's.
async function pinnedArrays() {
  const source = await pinned(Float32Array, 4)
  is<typeof source, Float32Array<ArrayBuffer>>(true)
  const { signal } = new AbortController()
  const result = await cudaGather(source, await pinned(Int32Array, 1), { signal })
  is<typeof result, Float32Array<ArrayBuffer>>(true)
  await DeviceArray.from(source, { placement: 'pinned' })
  await setMemoryLimits({ pinnedBytes: 0 })
  const { kept } = (await cudaStatus()).memory.pinnedBytes
  is<typeof kept, number>(true)
  // @ts-expect-error no class
  await pinned('Float32Array', 4)
  // @ts-expect-error no signal
  await cudaGather(source, index, { signal: true })
  // @ts-expect-error no placement
  await DeviceArray.from(source, { placement: 'host' })
  // @ts-expect-error no limit
  await setMemoryLimits({ hostBytes: 1 })
}

const status: Promise<CudaStatus> = cudaStatus()
const route: Promise<Explanation> = explain(new Float32Array(1), index, { rowLength: 1 })

export { classes, devices, generic, optionsApart, outs, pinnedArrays, resident, route, status }
