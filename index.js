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

// An error made on another thread has no stack. Captured here, after the await, it shows the
// callers that wait for this promise; a call that succeeds pays nothing for it.
const withStack = (error) => {
  Error.captureStackTrace(error, withStack)
  return error
}

async function cudaGather(source, index, options) {
  // What is thrown here, on the caller's own stack, rejects the promise as it is.
  const gathering = binding.cudaGather(source, index, options, defaultDevice, create, isResizable)
  try {
    return await gathering
  } catch (error) {
    throw withStack(error)
  }
}

async function cudaStatus() {
  return binding.cudaStatus()
}

module.exports = { cudaGather, cudaStatus }
