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
