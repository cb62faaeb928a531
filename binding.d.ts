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

/** Options of {@link cudaGather} for a source of class `S` and an `out` of class `O`. */
export interface GatherOptions<
  S extends SourceArray = SourceArray,
  O extends SameClass<S> = SameClass<S>,
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
   * `index.length * rowLength` elements. `source.length` must be a multiple of it. Default 1.
   */
  rowLength?: number | undefined
  /**
   * An array to write the result into and to return: of the source's class, of
   * `index.length * rowLength` elements, overlapping neither `source` nor `index`. Using one again
   * saves the first touch of fresh memory, which costs more than the gather.
   *
   * Where an index is out of range, `out` is left as it was. Where the driver fails while it
   * copies the result back (`ERR_CUDA`), `out` may hold part of it.
   */
  out?: O | undefined
  /**
   * `'cpu'`; `'cuda'` or `'cuda:N'`, an error where that device is not usable; `'auto'`, whichever
   * moves the fewest bytes over the bus (for arrays on the host, the CPU). Default: what the
   * environment variable `CUGATHER_DEVICE` said when the module was loaded; without it, CUDA where
   * it is usable, else the CPU.
   */
  device?: 'cpu' | 'cuda' | `cuda:${number}` | 'auto' | undefined
}

/**
 * Which binding artifact the generated loader actually loaded: `'native'` for
 * a native addon, otherwise the `platformArchABI` of the WASI flavor. Every
 * flavor napi-rs can build is listed, because `NAPI_RS_NATIVE_LIBRARY_PATH`
 * can point the loader at a WASI artifact this package does not build itself.
 */
export declare const __napiBindingTarget: 'native' | 'wasm32-wasi' | 'wasm32-wasip1'

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
 * @param source Rows of `rowLength` elements; a typed array of any class. Values are moved, never
 *   converted: NaN payloads, -0 and 64-bit integers come out bit for bit.
 * @param index Row numbers: a typed array of any integer class, read by value. -1 is the last row.
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
 *   with its name and number as `driverError` and `driverCode`.
 *
 * Every error rejects the promise; none is thrown synchronously. After any of them the next call
 * works.
 */
export declare function cudaGather<S extends SourceArray, O extends SameClass<S> = SameClass<S, ArrayBuffer>>(source: S, index: IndexArray, options?: GatherOptions<S, O>): Promise<O>

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
export declare function explain<S extends SourceArray, O extends SameClass<S> = SameClass<S, ArrayBuffer>>(source: S, index: IndexArray, options?: GatherOptions<S, O>): Promise<Explanation>

/** What {@link explain} found. */
export interface Explanation {
  /**
   * `'cpu'`: everything stays in host memory. `'upload'`: source and index are copied to the
   * device, the result is copied back.
   */
  route: 'cpu' | 'upload'
  /** As the option `device` takes it: `'cpu'`, `'cuda:0'`, … */
  device: 'cpu' | `cuda:${number}`
  /** Bytes that would cross the bus to the device. */
  bytesToDevice: number
  /** Bytes that would cross the bus from the device. */
  bytesFromDevice: number
}
