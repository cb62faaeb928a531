/** The typed-array classes by name, on buffers of type `B`. */
interface Classes<B extends ArrayBufferLike> {
  Int8Array: Int8Array<B>
  Uint8Array: Uint8Array<B>
  Uint8ClampedArray: Uint8ClampedArray<B>
  Int16Array: Int16Array<B>
  Uint16Array: Uint16Array<B>
  Int32Array: Int32Array<B>
  Uint32Array: Uint32Array<B>
  Float16Array: Float16<B>
  Float32Array: Float32Array<B>
  Float64Array: Float64Array<B>
  BigInt64Array: BigInt64Array<B>
  BigUint64Array: BigUint64Array<B>
}

/** `Float16Array` where the program's own library types have it, else `never`. */
type Float16<B extends ArrayBufferLike> = typeof globalThis extends {
  Float16Array: { prototype: infer A }
}
  ? A & { readonly buffer: B }
  : never

/** `AbortSignal` where the program's own types have it: Node's, or the DOM's. */
type Signal = typeof globalThis extends { AbortSignal: { prototype: infer A } } ? A : never

/** What a source can be: a typed array of any class, a `Buffer` included. */
export type SourceArray = Classes<ArrayBufferLike>[keyof Classes<ArrayBufferLike>]

/** What an index can be: a typed array of integers, read by value. */
export type IndexArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array

/** A typed array of the class of `S`, on a buffer of type `B`. */
export type SameClass<
  S extends SourceArray,
  B extends ArrayBufferLike = ArrayBufferLike,
> = Classes<B>[S[typeof Symbol.toStringTag] & keyof Classes<B>]

/** The class of a DeviceArray's elements, for the types alone. */
declare const elements: unique symbol

/** Options of {@link DeviceArray.from}. */
export interface DeviceArrayOptions {
  /** Elements in a row, 1 or more, for gathers that don't say. Default 1. */
  rowLength?: number | undefined
  /**
   * Where the array is to live: `'cpu'`; `'cuda'` or `'cuda:N'`, an error where that device is not
   * usable. Default, and `'auto'`: what `CUGATHER_DEVICE` said, else CUDA device 0 where it is
   * usable, else the CPU.
   */
  device?: Device | undefined
  /**
   * On a CUDA device, `'device'`: in its memory; `'pinned'`: in page-locked memory of the host, of
   * which each gather reads what it wants over the bus (route `'mapped'`), for an array that the
   * device has no room for. On the CPU both are native memory. Default `'device'`.
   */
  placement?: 'device' | 'pinned' | undefined
}

/**
 * A typed array of zeros in page-locked memory, which a GPU reaches at the full speed of the bus: as a
 * source it is read in place where a gather wants few of its bytes (route `'mapped'`) and copied up
 * the fastest way otherwise; as an index or `out` it needs no copy in between. Without CUDA, and in
 * runtimes that take no memory of others (Electron), an ordinary array.
 *
 * It comes from a pool, and goes back there some time after nobody can reach it any more. To make
 * one takes some 0.4 ms a MiB where the pool has none. Its buffer can't be transferred to a worker
 * on Node 22 and later.
 *
 * @param Class A typed-array class, such as `Float32Array`.
 * @param length Elements.
 */
export declare function pinned<C extends Classes<ArrayBuffer>[keyof Classes<ArrayBuffer>]>(
  Class: new (length: number) => C,
  length: number,
): Promise<C>

/**
 * An array that lives where gathers run: in the memory of a CUDA device or, without one, in native
 * memory of the host, with the same behaviour. A gather from it moves the index and the result, not
 * the source.
 *
 * The elements are those at the time of `from`, and of `update` after that. It can't be sent to a
 * worker: share the typed array, and make one there.
 */
export declare class DeviceArray<S extends SourceArray = SourceArray> {
  private constructor()
  readonly [elements]: S

  /**
   * Copies a typed array to the device, on a thread of libuv's pool. Leave a `source` of over 1 MiB
   * alone until the promise settles: it is read in place.
   *
   * Rejects with `ERR_CUDA_UNAVAILABLE`, `ERR_CUDA_OUT_OF_MEMORY`, or as {@link cudaGather} does
   * for arguments that can't be used.
   */
  static from<S extends SourceArray>(
    source: S,
    options?: DeviceArrayOptions,
  ): Promise<DeviceArray<SameClass<S>>>

  /** Elements. */
  readonly length: number
  /** Elements in a row. */
  readonly rowLength: number
  /** numpy's name for the type of an element: `'float32'`, …; `'bigint64'`, `'biguint64'`. */
  readonly dtype: string
  /** Bytes of all elements. */
  readonly byteLength: number
  /** As the option `device` takes it: `'cpu'`, `'cuda:0'`, … */
  readonly device: 'cpu' | `cuda:${number}`
  /** Whether it was disposed of. */
  readonly disposed: boolean

  /** `cudaGather(this, index, options)`, which see. */
  gather<O extends SameClass<S> = SameClass<S, ArrayBuffer>, R extends 'host' | 'device' = 'host'>(
    index: IndexArray | DeviceArray<IndexArray>,
    options?: GatherOptions<S, O, R>,
  ): Promise<GatherResult<S, O, R>>

  /** A new typed array of the elements. */
  toHost(): Promise<SameClass<S, ArrayBuffer>>

  /**
   * Copies a typed array of the same class over the elements from `offset` on (in elements). A
   * gather that runs meanwhile sees old or new ones, and calls that are not awaited have no order
   * among them. Leave `values` of over 1 MiB alone until the promise settles.
   *
   * Rejects with a RangeError where they don't fit in.
   */
  update(offset: number, values: SameClass<S>): Promise<void>

  /**
   * Lets the memory go. Gathers that have begun finish; whatever is asked of the array later rejects
   * with `ERR_DISPOSED`. A second call does nothing. An array that is never disposed of goes when it
   * is collected, some time after nobody can reach it any more.
   */
  dispose(): void
  /** `dispose`, for `using`. */
  [Symbol.dispose](): void
}

/** What a gather gives: `out` or a new typed array, or with `result: 'device'` a DeviceArray. */
export type GatherResult<
  S extends SourceArray,
  O extends SameClass<S>,
  R extends 'host' | 'device',
> = R extends 'device' ? DeviceArray<SameClass<S>> : O

type Device = 'cpu' | 'cuda' | `cuda:${number}` | 'auto'

/** Options of {@link cudaGather} for a source of class `S` and an `out` of class `O`. */
export interface GatherOptions<
  S extends SourceArray = SourceArray,
  O extends SameClass<S> = SameClass<S>,
  R extends 'host' | 'device' = 'host',
> {
  /**
   * What becomes of an index that names no row, for a source of n rows
   * ([numpy.take](https://numpy.org/doc/stable/reference/generated/numpy.take.html)'s names;
   * `'fill'` is [jax.numpy.take](https://docs.jax.dev/en/latest/_autosummary/jax.numpy.take.html)'s):
   *
   * | mode      | -n … -1             | outside -n … n-1    | n = 0 and an index |
   * | --------- | ------------------- | ------------------- | ------------------ |
   * | `'raise'` | counts from the end | RangeError          | RangeError         |
   * | `'wrap'`  | index modulo n      | index modulo n      | RangeError         |
   * | `'clip'`  | 0                   | 0 or n-1            | RangeError         |
   * | `'fill'`  | counts from the end | `fillValue`         | `fillValue`        |
   *
   * An empty index gives an empty array in every mode. Default `'raise'`.
   */
  mode?: 'raise' | 'wrap' | 'clip' | 'fill' | undefined
  /**
   * What mode `'fill'` puts where an index names no row, in every element of the row; stored as
   * the source's class stores it. An integer class refuses a value that it can't hold
   * (RangeError). Default NaN for a floating-point source, required for integers; other modes
   * don't look at it.
   */
  fillValue?: (S extends BigInt64Array | BigUint64Array ? bigint : number) | undefined
  /**
   * `false`: a negative index names no row, rather than counting from the end, in modes `'raise'`
   * and `'fill'`. For indices of a join, where -1 stands for "no row". Default `true`.
   */
  wrapNegative?: boolean | undefined
  /**
   * Elements in a row, 1 or more. `index` then names rows, and the result has
   * `index.length * rowLength` elements. `source.length` must be a multiple of it. Default 1, or a
   * DeviceArray's own.
   */
  rowLength?: number | undefined
  /**
   * An array to write the result into and to return: of the source's class, of
   * `index.length * rowLength` elements, overlapping neither `source` nor `index`. Using one again
   * saves the first touch of fresh memory, which costs more than the gather.
   *
   * Where an index is out of range, `out` is left as it was; one from {@link pinned}, on a CUDA
   * device, holds the rows of the other indices. Where the driver fails while it copies the result
   * back (`ERR_CUDA`), `out` may hold part of it.
   */
  out?: O | undefined
  /**
   * `'cpu'`; `'cuda'` or `'cuda:N'`, an error where that device is not usable; `'auto'`, whichever
   * moves the fewest bytes over the bus (for arrays on the host, the CPU). Default: what the
   * environment variable `CUGATHER_DEVICE` said when the module was loaded; without it, CUDA where
   * it is usable, else the CPU. Where the source or the index is a DeviceArray, the gather runs
   * where that is, and another device named here is an error.
   */
  device?: Device | undefined
  /**
   * `'device'` leaves the result where the gather runs, as a DeviceArray with the rows' length.
   * Default `'host'`.
   */
  result?: R | undefined
  /**
   * Aborts the call: it rejects with an `AbortError` (`code` `'ABORT_ERR'`, the signal's reason for
   * its `cause`). At once where the signal is aborted already, or while the call waits; while it
   * runs, as soon as its memory can be let go: between two of its chunks, some ten milliseconds at
   * most. `out` may then hold part of the result. One signal serves any number of calls, and keeps
   * nothing of them.
   */
  signal?: Signal | undefined
}

/** Not for users: `DeviceArray` in index.js holds one of these in a private field. */
export declare class ResidentArray {
  get length(): number
  get rowLength(): number
  get disposed(): boolean
  /** numpy's name for the type of an element. */
  get dtype(): string
  get byteLength(): number
  get device(): string
  /** Lets the memory go as soon as no gather uses it. A second call does nothing. */
  dispose(): void
}

/** A CUDA device. */
export interface CudaDevice {
  /** The name that the option `device` takes: `'cuda:0'`, `'cuda:1'`, … */
  device: `cuda:${number}`
  /** The model, such as `'NVIDIA H200'`; `null`, as below, where the driver does not say. */
  name: string | null
  /** Such as `'9.0'`. */
  computeCapability: string | null
  memory: CudaMemory
}

/**
 * Gathers rows of `source`: `result[i] = source[index[i]]`, as
 * [numpy.take](https://numpy.org/doc/stable/reference/generated/numpy.take.html) does along axis
 * 0, on a CUDA device where one is usable and else on the CPU, with the same results and errors.
 *
 * The work runs on a thread of libuv's pool. Until the promise settles, leave inputs over 1 MiB
 * and `out` alone: they are used in place. Smaller inputs are copied at the call.
 *
 * @param source Rows of `rowLength` elements; a typed array of any class, or a
 *   {@link DeviceArray}, which need not be moved. Values are moved, never
 *   converted: NaN payloads, -0 and 64-bit integers come out bit for bit.
 * @param index Row numbers: a typed array of any integer class, or a DeviceArray of one, read by
 *   value. -1 is the last row.
 * @param options See {@link GatherOptions}.
 * @returns A new typed array of the source's class (a plain `Uint8Array` for a `Buffer`), with
 *   `index.length * rowLength` elements and a buffer of its own; or `out`.
 * @throws {RangeError} `ERR_OUT_OF_RANGE` where an index names no row, with the fields `position`
 *   (the first such place in `index`), `index` (the value there) and `length` (rows of the
 *   source); and for a number that an option can't take.
 * @throws {TypeError} `ERR_INVALID_ARG_TYPE` or `ERR_INVALID_ARG_VALUE`, naming the argument and
 *   what was passed.
 * @throws {Error} `ERR_CUDA_UNAVAILABLE` where `device` names a CUDA device that is not usable,
 *   with the reason; `ERR_CUDA_OUT_OF_MEMORY`; `ERR_CUDA` for any other failure of the driver,
 *   with its name and number as `driverError` and `driverCode`; `ERR_DISPOSED` for a DeviceArray
 *   that was disposed of.
 *
 * Every error rejects the promise; none is thrown synchronously. After any of them the next call
 * works.
 */
export declare function cudaGather<S extends SourceArray, O extends SameClass<S> = SameClass<S, ArrayBuffer>, R extends 'host' | 'device' = 'host'>(source: S | DeviceArray<S>, index: IndexArray | DeviceArray<IndexArray>, options?: GatherOptions<S, O, R>): Promise<GatherResult<S, O, R>>

/** A device's memory, in bytes. */
export interface CudaMemory {
  total: number | null
  /** `null` also for a device that this process has not used yet: asking would make a context on it. */
  free: number | null
}

/**
 * Says whether CUDA is usable and, if not, exactly why. Makes the context on device 0 where there
 * is one (0.3 s, on a thread of libuv's pool), so that the answer is that of a gather.
 *
 * Never rejects for want of CUDA: that is an answer.
 */
export declare function cudaStatus(): Promise<CudaStatus>

/** What {@link cudaStatus} found. */
export interface CudaStatus {
  /** Whether a gather can run on CUDA: device 0 has a context and the kernels are loaded. */
  usable: boolean
  /** Why it is not usable and what to do about it; `null` where it is. */
  reason: string | null
  /**
   * The NVIDIA driver's version, such as `'580.159.04'`; `null` where it is not known (it is
   * read from the Linux kernel module).
   */
  driverVersion: string | null
  /** The newest CUDA version that the driver supports, such as `'13.0'`; `null` without a driver. */
  cudaVersion: string | null
  /** The devices that the driver sees, in its order: `devices[1]` is `'cuda:1'`. */
  devices: Array<CudaDevice>
  /** What cugather holds of their memory, and of the host's in page-locked form. */
  memory: MemoryStatus
}

/**
 * Says which route {@link cudaGather} would take with these arguments and how many bytes it would
 * move, and gathers nothing. Rejects as the call would for arguments that don't fit each other or
 * a device that is not usable; a bad index is not looked for, and no result is made that could be
 * too large.
 *
 * The first call that leads to a CUDA device makes its context (0.3 s, on a thread of libuv's
 * pool).
 */
export declare function explain<S extends SourceArray, O extends SameClass<S> = SameClass<S, ArrayBuffer>, R extends 'host' | 'device' = 'host'>(source: S | DeviceArray<S>, index: IndexArray | DeviceArray<IndexArray>, options?: GatherOptions<S, O, R>): Promise<Explanation>

/** What {@link explain} found. */
export interface Explanation {
  /**
   * `'cpu'`: everything stays in host memory. `'upload'`: the source is copied to the device.
   * `'resident'`: the source is on the device already. `'mapped'`: the source is in page-locked
   * memory, and the device reads what it wants of it over the bus. In these three an index that
   * is not on the device goes there, and a result that is wanted on the host comes back.
   */
  route: 'cpu' | 'upload' | 'resident' | 'mapped'
  /** As the option `device` takes it: `'cpu'`, `'cuda:0'`, … */
  device: 'cpu' | `cuda:${number}`
  /** Bytes that would cross the bus to the device. */
  bytesToDevice: number
  /** Bytes that would cross the bus from the device. */
  bytesFromDevice: number
}

/** In bytes. */
export interface HeldMemory {
  /**
   * The most that is kept idle for the next call, see {@link setMemoryLimits}; `null` as long as
   * none was set and no device was used: an eighth of the device's memory then.
   */
  limit: number | null
  /** Kept idle. */
  kept: number
  /** In arrays and running calls. */
  used: number
}

/** Memory that cugather holds, of this process and for all of its threads. */
export interface MemoryStatus {
  /** On all devices together; the limit is for each. */
  deviceBytes: HeldMemory
  /** Page-locked on the host. */
  pinnedBytes: HeldMemory
}

/**
 * Sets how much idle memory is kept for the next call, and frees what is beyond. Memory that arrays
 * and running calls use does not count. For every thread of the process; {@link cudaStatus} shows
 * the limits, and what is kept and used.
 *
 * Rejects with a RangeError for a number that is no size, a TypeError for what is no number.
 */
export declare function setMemoryLimits(limits: { deviceBytes?: number | undefined; pinnedBytes?: number | undefined }): Promise<void>
