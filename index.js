'use strict'

const { Buffer, constants } = require('node:buffer')
const diagnosticsChannel = require('node:diagnostics_channel')
const { addAbortListener } = require('node:events')
const { isArrayBuffer, isPromise, isSharedArrayBuffer } = require('node:util/types')
const { markAsUncloneable } = require('node:worker_threads')
const binding = require('./load.js')

const { isFailure, isResident } = binding

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
const { isView } = ArrayBuffer
const { defineProperty, entries, getOwnPropertyDescriptor } = Object
const { captureStackTrace } = Error

// The getters themselves, since a buffer can have a property of its own by the same name. Not every
// runtime has every one.
const getter = (prototype, name) => getOwnPropertyDescriptor(prototype, name)?.get
const resizable = getter(ArrayBuffer.prototype, 'resizable')
const growable = getter(SharedArrayBuffer.prototype, 'growable')
const immutable = getter(ArrayBuffer.prototype, 'immutable')

// What the binding calls must not throw into it: undefined says that there is no array to be had.
const orUndefined = (make) => (type, length) => {
  try {
    return make(type, length)
  } catch {
    return undefined
  }
}

// An array of zeros.
const create = orUndefined((type, length) => new classes[type](length))

// An array for a result, every element of which is written before anybody sees it. So it need not be
// made of zeros, which on memory that was used before cost as much as the gather. Such buffers are
// Node's own: not under Jest, where they would not be instances of the caller's ArrayBuffer.
const { allocUnsafeSlow } = Buffer
const isOwnRealm = allocUnsafeSlow(1).buffer instanceof ArrayBuffer
const LEAST_BYTES = 65536
const createResult = orUndefined((type, length) => {
  const bytes = length * classes[type].BYTES_PER_ELEMENT
  const isWorthIt = bytes >= LEAST_BYTES && bytes <= constants.MAX_LENGTH
  if (!isOwnRealm || !isWorthIt) return create(type, length)
  return new classes[type](allocUnsafeSlow(bytes).buffer, 0, length)
})

// BufferKind in src/binding/typed_array.rs: 0 fixed, 1 of changing length, 2 immutable.
const bufferKind = (buffer) => {
  if (isSharedArrayBuffer(buffer)) return growable && apply(growable, buffer, []) ? 1 : 0
  if (resizable && apply(resizable, buffer, [])) return 1
  return immutable && apply(immutable, buffer, []) ? 2 : 0
}

// Read once: a variable that changes later is no way to switch devices, the option is.
const defaultDevice = process.env.CUGATHER_DEVICE || undefined

// A property of its own, whatever somebody has put on prototypes.
const define = (object, name, value, enumerable) =>
  defineProperty(object, name, {
    __proto__: null,
    value,
    enumerable,
    writable: true,
    configurable: true,
  })

// The binding says what failed, the error is made here: of this realm's class, with the stack of
// those who wait for the promise. What the caller's own code threw stays as it is.
function toError(failure, caller, signal) {
  if (!isFailure(failure)) return failure
  if (failure.errorClass === 'AbortError') return abortError(signal, caller)
  const error = new errors[failure.errorClass](failure.message)
  captureStackTrace(error, caller)
  for (const [name, value] of entries(failure.fields)) define(error, name, value, true)
  return error
}

// Only this file can make a DeviceArray: nobody else has the key.
const key = Symbol('DeviceArray')
// The native array inside a DeviceArray; any other value as it is.
let unwrapped

// Mostly a typed array, which takes no call of the binding to tell.
const wrapped = (result) =>
  isView(result) || !isResident(result) ? result : new DeviceArray(key, result)

// A call that can't begin gives its failure in place of a promise. What the caller's own code
// throws meanwhile rejects as it is.
async function settled(start) {
  try {
    const started = start()
    if (!isPromise(started)) throw started
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
  define(error, 'name', 'AbortError', false)
  define(error, 'code', 'ABORT_ERR', true)
  return error
}

// The option `signal`, which is to be an AbortSignal that is not aborted.
function readSignal(options, caller) {
  const signal = options?.signal
  if (signal === undefined) return undefined
  if (!isSignal(signal)) throw binding.refuseSignal(signal)
  if (isAborted(signal)) throw abortError(signal, caller)
  return signal
}

// By signal, the calls that it aborts and the one listener for all of them: Node warns of a signal
// with many listeners, and a signal may outlive any number of calls.
const listeners = new WeakMap()
let lastId = 0

function listen(signal) {
  // 0 is for calls that nobody aborts.
  lastId = (lastId % 0xffffffff) + 1
  let listener = listeners.get(signal)
  if (!listener) {
    listener = { ids: new Set() }
    const abort = () => {
      if (isAborted(signal)) for (const id of listener.ids) binding.abort(id)
      // Somebody dispatched an event of that name, and used the listener up.
      else arm()
    }
    // Node's own way: other listeners can't stop the event before it is here.
    const arm = () => {
      listener.armed = addAbortListener(signal, abort)
    }
    arm()
    listeners.set(signal, listener)
  }
  listener.ids.add(lastId)
  return lastId
}

function unlisten(signal, id) {
  const listener = listeners.get(signal)
  listener.ids.delete(id)
  if (listener.ids.size > 0) return
  listeners.delete(signal)
  listener.armed[Symbol.dispose]()
}

// index.d.ts says what all of these do.

async function cudaGather(source, index, options) {
  const told = channel.hasSubscribers ? { __proto__: null } : undefined
  let signal
  let id = 0
  try {
    signal = readSignal(options, cudaGather)
    if (signal) id = listen(signal)
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
    if (signal && isAborted(signal)) {
      if (result instanceof DeviceArray) result.dispose()
      throw abortError(signal, cudaGather)
    }
    if (told) channel.publish({ ...told })
    return result
  } catch (failure) {
    const error = toError(failure, cudaGather, signal)
    if (told) channel.publish({ ...told, error })
    throw error
  } finally {
    if (id) unlisten(signal, id)
  }
}

const explain = (source, index, options) =>
  settled(() => {
    readSignal(options, settled)
    return binding.explain(
      unwrapped(source),
      unwrapped(index),
      options,
      defaultDevice,
      create,
      bufferKind,
    )
  })

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
      define(error, 'code', 'ERR_ILLEGAL_CONSTRUCTOR', true)
      throw error
    }
    this.#array = array
    // Sent to a worker, it would arrive there as an empty object: an error where the runtime can.
    markAsUncloneable?.(this)
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

  get disposed() {
    return this.#array.disposed
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
    // The prototype, or what inherits from it.
    if (!(#array in this)) return 'DeviceArray {}'
    const { dtype, length, rowLength, device, disposed } = this
    return `DeviceArray ${inspect({ dtype, length, rowLength, device, disposed }, options)}`
  }
}

module.exports = { cudaGather, cudaStatus, DeviceArray, explain, pinned, setMemoryLimits }
