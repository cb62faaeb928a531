'use strict'

const { isSharedArrayBuffer } = require('node:util/types')
const binding = require('./binding.js')

// This realm's classes, by Node-API's numbers (CLASSES in src/binding/typed_array.rs): under Jest
// or in a vm context they are those that the caller sees.
const classes = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  globalThis.Float16Array,
]

const create = (type, length) => new classes[type](length)

// The getters themselves, since a buffer can have a property of its own by the same name.
const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get
const resizable = getter(ArrayBuffer.prototype, 'resizable')
const growable = getter(SharedArrayBuffer.prototype, 'growable')

const isResizable = (buffer) =>
  Reflect.apply(isSharedArrayBuffer(buffer) ? growable : resizable, buffer, [])

// Read once: a variable that changes later is no way to switch devices, the option is.
const defaultDevice = process.env.CUGATHER_DEVICE || undefined

// What the binding needs of this realm.
const realm = [defaultDevice, create, isResizable]

// What the binding throws on the caller's own stack rejects the promise as it is. An error made on
// another thread has no stack: captured here, after the await, it shows the callers that wait for
// this promise, and a call that succeeds pays nothing for it.
async function settled(start) {
  const promise = start()
  try {
    return await promise
  } catch (error) {
    Error.captureStackTrace(error, settled)
    throw error
  }
}

const cudaGather = (source, index, options) =>
  settled(() => binding.cudaGather(source, index, options, ...realm))

const explain = (source, index, options) =>
  settled(() => binding.explain(source, index, options, ...realm))

const cudaStatus = () => settled(() => binding.cudaStatus())

module.exports = { cudaGather, cudaStatus, explain }
