// Typed arrays by numpy's names for their elements.

const dtypes = {
  int8: Int8Array,
  uint8: Uint8Array,
  uint8clamped: Uint8ClampedArray,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
  bigint64: BigInt64Array,
  biguint64: BigUint64Array,
}
if (globalThis.Float16Array) dtypes.float16 = globalThis.Float16Array

const isInteger = (Class) => !/^Float/.test(Class.name)
const isBigInt = (Class) => /^Big/.test(Class.name)

// The bytes of a view. Arrays are compared through these: a float that goes through a JavaScript
// variable may lose the payload of a NaN.
const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength)

const fromBytes = (Class, bytes) => new Class(Uint8Array.from(bytes).buffer)

const f32 = (...values) => Float32Array.from(values)
const i32 = (...values) => Int32Array.from(values)

module.exports = { bytesOf, dtypes, f32, fromBytes, i32, isBigInt, isInteger }
