// What goes in: views of every kind, and errors for all else.

const test = require('ava')
const { readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const vm = require('node:vm')
const { cudaGather, DeviceArray } = require('../index.js')
const { f32, i32 } = require('./helpers/arrays.js')
const { onEachDevice } = require('./helpers/devices.js')

/** Asserts a TypeError with this code, rejected and never thrown, whose message matches. */
async function refuses(t, args, code, message) {
  let promise
  t.notThrows(() => {
    promise = cudaGather(...args)
  })
  t.true(promise instanceof Promise)
  await t.throwsAsync(promise, { instanceOf: TypeError, code, message })
}

const TYPE = 'ERR_INVALID_ARG_TYPE'
const VALUE = 'ERR_INVALID_ARG_VALUE'

// Neither a source nor an index, and the words for it.
const neither = [
  [undefined, 'undefined'],
  [null, 'null'],
  [true, 'boolean true'],
  [1.5, 'number 1.5'],
  [12n, 'bigint 12n'],
  ['01', "string '01'"],
  ['x'.repeat(100), `string '${'x'.repeat(40)}…'`],
  [Symbol('s'), 'a symbol'],
  [() => 0, 'a function'],
  [[0, 1], 'an Array of length 2'],
  [[true, false], 'an Array of length 2'],
  [{ length: 1, 0: 0 }, 'an object'],
  [Object.create(null), 'an object'],
  [new Map(), 'an instance of Map'],
  [new DataView(new ArrayBuffer(8)), 'an instance of DataView'],
  [new ArrayBuffer(8), 'an instance of ArrayBuffer'],
  [Object.create(Float32Array.prototype), 'an instance of Float32Array'],
  [new Proxy(f32(1), {}), 'an instance of Float32Array'],
]

test('a source that is none is named, with what was passed', async (t) => {
  for (const [value, words] of neither) {
    const message = `Expected a typed array or DeviceArray for source but received ${words}`
    await refuses(t, [value, i32(0)], TYPE, message)
  }
})

test('an index that is none is named, with what was passed', async (t) => {
  const expected =
    'Expected a typed array or DeviceArray of integers (Int8Array to BigUint64Array) for index'
  for (const [value, words] of neither) {
    await refuses(t, [f32(1), value], TYPE, `${expected} but received ${words}`)
  }
  await refuses(t, [f32(1), f32(0)], TYPE, `${expected} but received a Float32Array of length 1`)
  await refuses(t, [f32(1), new Float64Array(2)], TYPE, /a Float64Array of length 2$/)
  await refuses(t, [f32(1)], TYPE, /undefined$/)
  await refuses(t, [], TYPE, /for source but received undefined$/)
})

test('hostile objects are described, not trusted', async (t) => {
  const throwing = {
    get constructor() {
      throw new Error('mine')
    },
  }
  await refuses(t, [throwing, i32(0)], TYPE, /received an object$/)
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  await refuses(t, [revoked.proxy, i32(0)], TYPE, /received an object$/)
  t.deepEqual(await cudaGather(f32(4), i32(0)), f32(4))
})

test('options that are none', async (t) => {
  for (const [value, words] of neither.slice(1, 11)) {
    const message = `Expected an object for options but received ${words}`
    await refuses(t, [f32(1), i32(0), value], TYPE, message)
  }
  t.deepEqual(await cudaGather(f32(1), i32(0), undefined), f32(1))
  t.deepEqual(await cudaGather(f32(1), i32(0), { mode: undefined, out: undefined }), f32(1))
})

test('another argument in the place of the options is not read as such', async (t) => {
  const misplaced = [
    [new Float32Array(1 << 22), 'a Float32Array of length 4194304'],
    [new ArrayBuffer(8), 'an instance of ArrayBuffer'],
    [new Date(0), 'an instance of Date'],
    [Promise.resolve(), 'an instance of Promise'],
    [new AbortController().signal, 'an instance of AbortSignal'],
    [new Map([['mode', 'clip']]), 'an instance of Map'],
    [await DeviceArray.from(f32(1)), 'an instance of DeviceArray'],
  ]
  for (const [value, words] of misplaced) {
    const message = `Expected an object for options but received ${words}`
    await refuses(t, [f32(1), i32(0), value], TYPE, message)
  }
})

test('a value is described in few words, however large it is', async (t) => {
  const long = 'x'.repeat(1 << 24)
  const short = 'x'.repeat(40)
  await refuses(t, [f32(1), i32(0), { mode: long }], VALUE, new RegExp(`string '${short}…'$`))
  await refuses(t, [f32(1), i32(0), { [long]: 1 }], VALUE, new RegExp(`option '${short}…';`))
  const fill = { mode: 'fill', fillValue: 1n << (1n << 20n) }
  await refuses(t, [f32(1), i32(0), fill], TYPE, /received a bigint of 1048640 bits$/)
})

test('an unknown option or mode lists the known ones', async (t) => {
  await refuses(
    t,
    [f32(1), i32(0), { mod: 'wrap' }],
    VALUE,
    /^Unknown option 'mod'; the options are mode, fillValue, wrapNegative, rowLength, out, device, result, signal$/,
  )
  await refuses(
    t,
    [f32(1), i32(0), { mode: 'foo' }],
    VALUE,
    "Expected 'raise', 'wrap', 'clip' or 'fill' for mode but received string 'foo'",
  )
  await refuses(t, [f32(1), i32(0), { mode: 1 }], TYPE, /for mode but received number 1$/)
  await refuses(
    t,
    [f32(1), i32(0), { device: 'gpu' }],
    VALUE,
    /for device but received string 'gpu'$/,
  )
  await refuses(t, [f32(1), i32(0), { device: 0 }], TYPE, /for device but received number 0$/)
  await refuses(
    t,
    [f32(1), i32(0), { wrapNegative: 0 }],
    TYPE,
    /a boolean for wrapNegative but received number 0$/,
  )
})

test('what the caller throws comes out as it is', async (t) => {
  const looksLikeOurs = Object.assign(new Error('mine'), { errorClass: 'RangeError', fields: {} })
  const looksAborted = { errorClass: 'AbortError' }
  for (const thrown of [new Error('mine'), 'a string', undefined, looksLikeOurs, looksAborted]) {
    const options = {
      get mode() {
        throw thrown
      },
    }
    const [{ status, reason }] = await Promise.allSettled([cudaGather(f32(1), i32(0), options)])
    t.is(status, 'rejected')
    t.is(reason, thrown)
  }
})

test('an option is read once, before any memory is looked at', async (t) => {
  let reads = 0
  const source = f32(1, 2, 3)
  const options = {
    get mode() {
      reads++
      structuredClone(source, { transfer: [source.buffer] })
      return 'raise'
    },
  }
  await refuses(t, [source, i32(0), options], TYPE, /received a detached Float32Array/)
  t.is(reads, 1)
})

test('a detached view says so, and is not taken for an empty one', async (t) => {
  const detached = f32(1, 2)
  structuredClone(detached, { transfer: [detached.buffer] })
  await refuses(t, [detached, i32()], TYPE, /for source but received a detached Float32Array/)
  await refuses(t, [detached, i32(0)], TYPE, /for source but received a detached Float32Array/)
  const index = i32(0)
  structuredClone(index, { transfer: [index.buffer] })
  await refuses(t, [f32(1), index], TYPE, /for index but received a detached Int32Array/)
})

test('a resizable or growable buffer is refused, whatever it says of itself', async (t) => {
  const resizable = new ArrayBuffer(16, { maxByteLength: 32 })
  await refuses(t, [new Float32Array(resizable), i32(0)], TYPE, /resizable or growable/)
  Object.defineProperty(resizable, 'resizable', { value: false })
  await refuses(t, [f32(1), new Int32Array(resizable)], TYPE, /for index .* resizable or growable/)
  const growable = new Float32Array(new SharedArrayBuffer(16, { maxByteLength: 32 }))
  await refuses(t, [growable, i32(0)], TYPE, /resizable or growable/)
  await refuses(t, [f32(1), i32(0), { out: growable }], TYPE, /for out .* resizable or growable/)
})

onEachDevice('a view is its own elements only', async (t, gather) => {
  const source = f32(1, 2, 3, 4, 10, 20, 30, 40).subarray(4)
  t.deepEqual(await gather(source, i32(9, 9, 0, -1).subarray(2)), f32(10, 40))
  await t.throwsAsync(gather(source, i32(4)), { code: 'ERR_OUT_OF_RANGE' })
  t.deepEqual(await gather(source, i32(1, 2).subarray(2)), f32())
  const pooled = Buffer.allocUnsafe(24)
  const floats = new Float32Array(pooled.buffer, Math.ceil(pooled.byteOffset / 4) * 4, 3)
  floats.set([5, 6, 7])
  t.deepEqual(await gather(floats, i32(2, 0)), f32(7, 5))
})

onEachDevice('a view at any offset', async (t, gather) => {
  const bytes = Uint8Array.from({ length: 200 }, (_, i) => i)
  for (const offset of [1, 2, 3, 4, 7, 12]) {
    const view = bytes.subarray(offset, offset + 60)
    t.deepEqual(
      await gather(view, i32(1, 0, -1), { rowLength: 20 }),
      Uint8Array.from([
        ...view.subarray(20, 40),
        ...view.subarray(0, 20),
        ...view.subarray(40, 60),
      ]),
    )
  }
  const words = new Float32Array(bytes.buffer, 4, 33)
  const result = await gather(words, i32(2, 1), { rowLength: 11 })
  t.deepEqual(result, Float32Array.from([...words.subarray(22, 33), ...words.subarray(11, 22)]))
})

onEachDevice(
  'views of another realm, subclasses and Buffers are what they are',
  async (t, gather) => {
    const foreign = vm.runInNewContext('new Float32Array([1, 2])')
    t.false(foreign instanceof Float32Array)
    t.deepEqual(await gather(foreign, vm.runInNewContext('new Int32Array([1, 1])')), f32(2, 2))
    class Sub extends Float32Array {}
    const fromSub = await gather(Sub.from([3, 4]), i32(1))
    t.is(fromSub.constructor, Float32Array)
    t.deepEqual(fromSub, f32(4))
    const fromBuffer = await gather(Buffer.from('abc'), i32(2, 0))
    t.is(fromBuffer.constructor, Uint8Array)
    t.deepEqual(fromBuffer, Uint8Array.from([99, 97]))
  },
)

test('in another realm, results and errors are of its classes', async (t) => {
  const filename = require.resolve('../index.js')
  const context = vm.createContext({ process })
  const wrapper = `(function (require, module) {${readFileSync(filename, 'utf8')}\n})`
  const module = { exports: {} }
  vm.runInContext(wrapper, context)(createRequire(filename), module)
  const { cudaGather: gather } = module.exports
  const isOf = (value, name) => value instanceof vm.runInContext(name, context)
  t.true(isOf(await gather(f32(1, 2), i32(1)), 'Float32Array'))
  const reasons = await Promise.allSettled([gather(f32(1), i32(1)), gather(f32(1), 'no')])
  t.true(isOf(reasons[0].reason, 'RangeError'))
  t.is(reasons[0].reason.position, 0)
  t.true(isOf(reasons[1].reason, 'TypeError'))
})

test('an error has the stack of the call', async (t) => {
  async function theCaller() {
    await cudaGather(f32(1), i32(9))
  }
  const late = await t.throwsAsync(theCaller())
  t.regex(late.stack, /^RangeError: index 9 [\s\S]*at async theCaller/)
  async function theOther() {
    await cudaGather(f32(1), 'no')
  }
  const early = await t.throwsAsync(theOther())
  t.regex(early.stack, /^TypeError: Expected [\s\S]*at theOther/)
})
