// Calls with arguments that mean no good, in a process of its own: each must give a promise, and each
// promise a right-looking result, a documented error, or what the caller's own code threw. Prints how
// many calls there were. hostile.test.js runs it and sees that the process lives.

const assert = require('node:assert/strict')
const vm = require('node:vm')
const fc = require('fast-check')
const { cudaGather, explain } = require('../../index.js')
const { dtypes } = require('./arrays.js')

const RUNS = Number(process.argv[2])
const CODES = [
  'ERR_INVALID_ARG_TYPE',
  'ERR_INVALID_ARG_VALUE',
  'ERR_OUT_OF_RANGE',
  'ERR_CUDA_UNAVAILABLE',
]

const thrown = new Error("the caller's own")

/** Moves an array's memory away and lets it be collected. */
function detach(view) {
  if (
    ArrayBuffer.isView(view) &&
    view.buffer instanceof ArrayBuffer &&
    view.buffer.byteLength > 0
  ) {
    try {
      structuredClone(view.buffer, { transfer: [view.buffer] })
    } catch {
      // Some buffers can't be moved.
    }
  }
  globalThis.gc?.()
}

const length = fc.oneof(fc.nat(20), fc.constantFrom(0, 1, 300, (1 << 18) + 1))
const view = fc
  .record({
    Class: fc.constantFrom(...Object.values(dtypes)),
    length,
    offset: fc.nat(3),
    kind: fc.nat(6),
  })
  .map(({ Class, length, offset, kind }) => {
    const size = Class.BYTES_PER_ELEMENT
    const bytes = (offset + length) * size
    if (kind === 0) return new Class(new SharedArrayBuffer(bytes), offset * size)
    if (kind === 1)
      return new Class(new ArrayBuffer(bytes, { maxByteLength: bytes + 8 }), offset * size)
    if (kind === 2) return new Class(new SharedArrayBuffer(bytes, { maxByteLength: bytes + 8 }))
    if (kind === 3) return vm.runInNewContext(`new ${Class.name}(${length})`)
    const array = new Class(new ArrayBuffer(bytes), offset * size, length)
    if (kind === 4) detach(array)
    if (kind === 5) {
      const lie = { get: () => 2 ** 40 }
      for (const name of ['length', 'byteLength', 'byteOffset'])
        Object.defineProperty(array, name, lie)
      Object.defineProperty(array, 'constructor', { get: () => Map })
    }
    return array
  })

const forged = fc.constantFrom(
  Object.create(Float32Array.prototype),
  Object.create(Int32Array.prototype),
  Object.setPrototypeOf([1, 2], Int32Array.prototype),
  Object.setPrototypeOf(new Map(), Int32Array.prototype),
  new DataView(new ArrayBuffer(8)),
  new ArrayBuffer(8),
  { length: 2, 0: 0, 1: 1, buffer: new ArrayBuffer(8), byteOffset: 0, BYTES_PER_ELEMENT: 4 },
)

const proxied = fc.tuple(view, fc.boolean()).map(([target, throwing]) => {
  const trap = () => {
    if (throwing) throw thrown
    detach(target)
    return undefined
  }
  return new Proxy(target, {
    get: trap,
    getPrototypeOf: () => Int32Array.prototype,
  })
})

const anything = fc.oneof(
  { weight: 8, arbitrary: view },
  { weight: 1, arbitrary: forged },
  { weight: 1, arbitrary: proxied },
  {
    weight: 1,
    arbitrary: fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withTypedArray: true,
    }),
  },
)

const value = (name) => {
  const known = {
    mode: fc.constantFrom('raise', 'wrap', 'clip', 'fill'),
    fillValue: fc.oneof(fc.double(), fc.bigInt(), fc.integer()),
    wrapNegative: fc.boolean(),
    rowLength: fc.oneof(
      fc.integer({ min: 1, max: 8 }),
      fc.double(),
      fc.constantFrom(2 ** 53 - 1, 2 ** 31, 0),
    ),
    out: view,
    device: fc.constantFrom('cpu', 'auto', 'cuda:77'),
  }[name]
  return fc.oneof(
    { weight: 6, arbitrary: known },
    { weight: 1, arbitrary: fc.anything() },
    { weight: 1, arbitrary: proxied },
  )
}

/** Options as data, or as getters that count, throw or move an argument's memory away. */
const options = fc
  .record(
    {
      entries: fc.uniqueArray(
        fc
          .constantFrom('mode', 'fillValue', 'wrapNegative', 'rowLength', 'out', 'device')
          .chain((name) => fc.tuple(fc.constant(name), value(name))),
        { selector: ([name]) => name },
      ),
      getters: fc.boolean(),
      deed: fc.constantFrom('nothing', 'nothing', 'throw', 'detach'),
      unknown: fc.option(fc.string(), { freq: 8, nil: undefined }),
    },
    { noNullPrototype: false },
  )
  .map((given) => (args) => {
    const object = {}
    for (const [name, what] of given.entries) {
      const get = () => {
        if (given.deed === 'throw') throw thrown
        if (given.deed === 'detach') for (const arg of args) detach(arg)
        return what
      }
      const property = given.getters ? { get } : { value: what, writable: true }
      Object.defineProperty(object, name, { ...property, enumerable: true, configurable: true })
    }
    if (given.unknown !== undefined && !(given.unknown in object)) {
      Object.defineProperty(object, given.unknown, {
        value: 1,
        enumerable: true,
        configurable: true,
      })
    }
    return object
  })

async function check(call, args) {
  const promise = call(...args)
  assert.ok(promise instanceof Promise, 'no promise')
  const [{ status, value, reason }] = await Promise.allSettled([promise])
  if (status === 'fulfilled') {
    assert.ok(
      call === explain ? value.route : ArrayBuffer.isView(value),
      'a result of the wrong kind',
    )
  } else {
    assert.ok(
      reason === thrown || (reason instanceof Error && CODES.includes(reason.code)),
      reason?.stack ?? String(reason),
    )
  }
}

let calls = 0
const property = fc.asyncProperty(
  anything,
  anything,
  fc.oneof(
    { weight: 5, arbitrary: options },
    { weight: 1, arbitrary: anything.map((what) => () => what) },
  ),
  async (source, index, makeOptions) => {
    // Memory is looked for after the options were read: what they moved away is missed, not read.
    const args = [source, index]
    args.push(makeOptions([source, index]))
    calls++
    await check(cudaGather, args)
    if (calls % 8 === 0) await check(explain, args)
  },
)

async function main() {
  await fc.assert(property, { numRuns: RUNS })
  const right = await cudaGather(Float32Array.of(1, 2, 3), Int32Array.of(2, 0))
  assert.deepEqual([...right], [3, 1])
  console.log(calls)
}

main()
