'use strict'

const { Buffer, constants } = require('node:buffer')
const { isArrayBuffer, isPromise, isSharedArrayBuffer } = require('node:util/types')
const binding = require('./load.js')

// This realm's classes, by Node-API's numbers (CLASSES in src/binding/typed_array.rs): under Jest
// or in a vm context they are those that the caller sees. So are the errors.
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
const errors = { Error, RangeError, TypeError }

// Taken now, so that nothing that is patched later runs in the middle of a call.
const { apply } = Reflect
const { defineProperties, getOwnPropertyDescriptor, getOwnPropertyDescriptors } = Object
const { captureStackTrace } = Error

// The getters themselves, since a buffer can have a property of its own by the same name. Not every
// runtime has every one.
const getter = (prototype, name) => getOwnPropertyDescriptor(prototype, name)?.get
const resizable = getter(ArrayBuffer.prototype, 'resizable')
const growable = getter(SharedArrayBuffer.prototype, 'growable')
const immutable = getter(ArrayBuffer.prototype, 'immutable')

// An array of zeros.
const create = (type, length) => new classes[type](length)

// An array for a result, every element of which is written before anybody sees it. So it need not be
// made of zeros, which on memory that was used before cost as much as the gather. Such buffers are
// Node's own: not under Jest, where they would not be instances of the caller's ArrayBuffer.
const { allocUnsafeSlow } = Buffer
const isOwnRealm = allocUnsafeSlow(1).buffer instanceof ArrayBuffer
const LEAST_BYTES = 65536
const createResult = (type, length) => {
  const bytes = length * classes[type].BYTES_PER_ELEMENT
  const isWorthIt = bytes >= LEAST_BYTES && bytes <= constants.MAX_LENGTH
  if (!isOwnRealm || !isWorthIt) return create(type, length)
  return new classes[type](allocUnsafeSlow(bytes).buffer, 0, length)
}

// BufferKind in src/binding/typed_array.rs: 0 fixed, 1 of changing length, 2 immutable.
const bufferKind = (buffer) => {
  if (isSharedArrayBuffer(buffer)) return growable && apply(growable, buffer, []) ? 1 : 0
  if (resizable && apply(resizable, buffer, [])) return 1
  return immutable && apply(immutable, buffer, []) ? 2 : 0
}

// Read once: a variable that changes later is no way to switch devices, the option is.
const defaultDevice = process.env.CUGATHER_DEVICE || undefined

// The binding says what failed, the error is made here: of this realm's class, with the stack of
// those who wait for the promise.
function toError(failure, caller) {
  const Class = errors[failure?.errorClass]
  if (!Class) return failure
  const error = new Class(failure.message)
  captureStackTrace(error, caller)
  return defineProperties(error, getOwnPropertyDescriptors(failure.fields))
}

const { ResidentArray } = binding
// Only this file can make a DeviceArray: nobody else has the key.
const key = Symbol('DeviceArray')
// The native array inside a DeviceArray; any other value as it is.
let unwrapped

// A call that can't begin gives its failure in place of a promise. What the caller's own code
// throws meanwhile rejects as it is.
async function settled(start) {
  const started = start()
  if (!isPromise(started)) throw toError(started, settled)
  try {
    const result = await started
    return result instanceof ResidentArray ? new DeviceArray(key, result) : result
  } catch (failure) {
    throw toError(failure, settled)
  }
}

// index.d.ts says what all of these do.

const cudaGather = (source, index, options) =>
  settled(() =>
    binding.cudaGather(
      unwrapped(source),
      unwrapped(index),
      options,
      defaultDevice,
      createResult,
      bufferKind,
    ),
  )

const explain = (source, index, options) =>
  settled(() =>
    binding.explain(
      unwrapped(source),
      unwrapped(index),
      options,
      defaultDevice,
      create,
      bufferKind,
    ),
  )

const cudaStatus = () => settled(() => binding.cudaStatus())

const setMemoryLimits = (limits) => settled(() => binding.setMemoryLimits(limits))

const pinned = async (Class, length) => {
  // Not every runtime has every class, and `undefined` is none.
  const type = typeof Class === 'function' ? classes.indexOf(Class) : -1
  const made = await settled(() => binding.pinned(Class, type, length, create, bufferKind))
  return isArrayBuffer(made) ? new Class(made, 0, length) : made
}

class DeviceArray {
  #array

  static {
    unwrapped = (value) =>
      typeof value === 'object' && value !== null && #array in value ? value.#array : value
  }

  constructor(secret, array) {
    if (secret !== key) {
      const error = new TypeError('A DeviceArray is made by await DeviceArray.from(typedArray)')
      throw defineProperties(error, {
        code: { value: 'ERR_ILLEGAL_CONSTRUCTOR', enumerable: true },
      })
    }
    this.#array = array
  }

  static from(source, options) {
    return settled(() => binding.createResident(source, options, defaultDevice, create, bufferKind))
  }

  get length() {
    return this.#array.length
  }

  get rowLength() {
    return this.#array.rowLength
  }

  get dtype() {
    return this.#array.dtype
  }

  get byteLength() {
    return this.#array.byteLength
  }

  get device() {
    return this.#array.device
  }

  gather(index, options) {
    return cudaGather(this, index, options)
  }

  toHost() {
    return settled(() => binding.readResident(unwrapped(this), createResult, bufferKind))
  }

  async update(offset, values) {
    await settled(() => binding.writeResident(unwrapped(this), offset, values, create, bufferKind))
  }

  dispose() {
    this.#array.dispose()
  }

  [Symbol.dispose]() {
    this.dispose()
  }

  get [Symbol.toStringTag]() {
    return 'DeviceArray'
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options, inspect) {
    const { dtype, length, rowLength, device } = this
    return `DeviceArray ${inspect({ dtype, length, rowLength, device }, options)}`
  }
}

module.exports = { cudaGather, cudaStatus, DeviceArray, explain, pinned, setMemoryLimits }
