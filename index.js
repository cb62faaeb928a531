'use strict'

const { Buffer, constants } = require('node:buffer')
const diagnosticsChannel = require('node:diagnostics_channel')
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

const wrapped = (result) =>
  result instanceof ResidentArray ? new DeviceArray(key, result) : result

// A call that can't begin gives its failure in place of a promise. What the caller's own code
// throws meanwhile rejects as it is.
async function settled(start) {
  const started = start()
  if (!isPromise(started)) throw toError(started, settled)
  try {
    return wrapped(await started)
  } catch (failure) {
    throw toError(failure, settled)
  }
}

// Everybody who listens there is told of every gather.
const channel = diagnosticsChannel.channel('cugather:gather')

// A realm of `vm` may have no AbortSignal; then nobody in it can have one to pass.
const aborted = globalThis.AbortSignal && getter(AbortSignal.prototype, 'aborted')
const reason = globalThis.AbortSignal && getter(AbortSignal.prototype, 'reason')
const { addEventListener, removeEventListener } = globalThis.EventTarget?.prototype ?? {}

const isAborted = (signal) => apply(aborted, signal, [])

function isSignal(value) {
  try {
    isAborted(value)
    return true
  } catch {
    return false
  }
}

// As Node's own functions reject.
function abortError(signal, caller) {
  const cause = apply(reason, signal, [])
  const error = new Error('The operation was aborted', { cause })
  captureStackTrace(error, caller)
  return defineProperties(error, {
    name: { value: 'AbortError', writable: true, configurable: true },
    code: { value: 'ABORT_ERR', enumerable: true, writable: true, configurable: true },
  })
}

// As the binding says it of a call that was stopped.
const ABORTED = { errorClass: 'AbortError' }

// By signal, the calls that it aborts and the one listener for all of them: Node warns of a signal
// with many listeners, and a signal may outlive any number of calls.
const listeners = new WeakMap()
let lastId = 0

function listen(signal) {
  // 0 is for calls that nobody aborts.
  lastId = (lastId % 0xffffffff) + 1
  let listener = listeners.get(signal)
  if (!listener) {
    const ids = new Set()
    const abort = () => {
      for (const id of ids) binding.abort(id)
    }
    listener = { ids, abort }
    listeners.set(signal, listener)
    apply(addEventListener, signal, ['abort', abort, { once: true }])
  }
  listener.ids.add(lastId)
  return lastId
}

function unlisten(signal, id) {
  const { ids, abort } = listeners.get(signal)
  ids.delete(id)
  if (ids.size > 0) return
  listeners.delete(signal)
  apply(removeEventListener, signal, ['abort', abort])
}

// index.d.ts says what all of these do.

async function cudaGather(source, index, options) {
  const told = channel.hasSubscribers ? { __proto__: null } : undefined
  let signal
  let id = 0
  try {
    signal = options?.signal
    if (signal !== undefined) {
      if (!isSignal(signal)) throw binding.refuseSignal(signal)
      if (isAborted(signal)) throw ABORTED
      id = listen(signal)
    }
    const started = binding.cudaGather(
      unwrapped(source),
      unwrapped(index),
      options,
      defaultDevice,
      createResult,
      bufferKind,
      id,
      told,
    )
    if (!isPromise(started)) throw started
    const result = wrapped(await started)
    // Where the call was too far to be stopped, it was still not wanted any more.
    if (signal !== undefined && isAborted(signal)) {
      if (result instanceof DeviceArray) result.dispose()
      throw ABORTED
    }
    if (told) channel.publish({ ...told })
    return result
  } catch (failure) {
    const isAbort = failure?.errorClass === ABORTED.errorClass
    const error = isAbort ? abortError(signal, cudaGather) : toError(failure, cudaGather)
    if (told) channel.publish({ ...told, error })
    throw error
  } finally {
    if (id) unlisten(signal, id)
  }
}

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
