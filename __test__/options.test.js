// The options, against the table of the contract and the caller's own array for the result.

const test = require('ava')
const { cudaGather } = require('../index.js')
const { dtypes, f32, i32, isBigInt, isInteger } = require('./helpers/arrays.js')
const { agreesWithModel, rejectsAt } = require('./helpers/assert.js')
const { onEachDevice } = require('./helpers/devices.js')

onEachDevice('rows: the bound is rows, not elements', async (t, gather) => {
  const table = Float32Array.from({ length: 45 }, (_, i) => i)
  const row = (index) => gather(table, i32(index), { rowLength: 5 })
  t.deepEqual(await row(8), f32(40, 41, 42, 43, 44))
  t.deepEqual(await row(-9), f32(0, 1, 2, 3, 4))
  for (const index of [9, 44, -10])
    await rejectsAt(t, row(index), { position: 0, index, length: 9 })
})

test('rows: a length that is no row length', async (t) => {
  const call = (rowLength, length = 45) =>
    cudaGather(new Float32Array(length), i32(0), { rowLength })
  for (const rowLength of [0, -5, 2.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    await t.throwsAsync(call(rowLength), {
      instanceOf: RangeError,
      code: 'ERR_OUT_OF_RANGE',
      message: `Expected an integer of 1 or more for rowLength but received number ${rowLength}`,
    })
  }
  await t.throwsAsync(call('5'), { instanceOf: TypeError, code: 'ERR_INVALID_ARG_TYPE' })
  await t.throwsAsync(call(5, 44), {
    instanceOf: TypeError,
    code: 'ERR_INVALID_ARG_VALUE',
    message: /one of length 44, which is not a multiple of rowLength 5$/,
  })
})

onEachDevice('wrap is right for every period', async (t, gather) => {
  const source = f32(0, 1, 2, 3, 4, 5, 6)
  const index = i32(-8, -7, -1, 7, 14, 2147483647, -2147483648)
  t.deepEqual(await gather(source, index, { mode: 'wrap' }), f32(6, 0, 6, 0, 0, 1, 5))
  const wide = BigInt64Array.from([-(2n ** 63n), 2n ** 63n - 1n])
  await agreesWithModel(t, gather, source, wide, { mode: 'wrap' })
  await agreesWithModel(t, gather, source, BigUint64Array.from([2n ** 64n - 1n]), { mode: 'wrap' })
})

onEachDevice('clip does not count from the end', async (t, gather) => {
  const index = i32(-1, -2, -5, -2147483648, 5, 2147483647)
  t.deepEqual(await gather(f32(1, 2, 3, 4, 5), index, { mode: 'clip' }), f32(1, 1, 1, 1, 5, 5))
})

onEachDevice('fill counts from the end, and a join can switch that off', async (t, gather) => {
  const source = f32(10, 20, 30, 40)
  const index = i32(-1, -4, -5, 4)
  const fill = { mode: 'fill', fillValue: -10 }
  t.deepEqual(await gather(source, index, fill), f32(40, 10, -10, -10))
  const join = { ...fill, wrapNegative: false }
  t.deepEqual(await gather(source, index, join), f32(-10, -10, -10, -10))
  const promise = gather(source, i32(0, -1), { wrapNegative: false })
  await rejectsAt(t, promise, { position: 1, index: -1, length: 4 })
})

onEachDevice('a fill value is stored as its class stores it', async (t, gather) => {
  const index = i32(9, 0, 9)
  for (const fillValue of [Number.NaN, -0, 1e300, 0.1, 16777217]) {
    for (const Class of [Float32Array, Float64Array, dtypes.float16].filter(Boolean)) {
      for (const rowLength of [1, 3]) {
        const options = { mode: 'fill', fillValue, rowLength }
        await agreesWithModel(t, gather, new Class(6).fill(5), index, options)
      }
    }
  }
  t.deepEqual(await gather(f32(1), index, { mode: 'fill' }), f32(Number.NaN, 1, Number.NaN))
})

test('a fill value that an integer class cannot hold is refused', async (t) => {
  const fill = (Class, fillValue) => cudaGather(new Class(3), i32(9), { mode: 'fill', fillValue })
  const outside = [
    [Int32Array, 1.5],
    [Uint8Array, 300],
    [Uint8Array, -1],
    [Uint8ClampedArray, 256],
    [Int8Array, -129],
    [Int16Array, Number.NaN],
    [Uint32Array, 2 ** 32],
    [BigInt64Array, 2n ** 63n],
    [BigInt64Array, -(2n ** 63n) - 1n],
    [BigUint64Array, 2n ** 64n],
    [BigUint64Array, -1n],
  ]
  for (const [Class, fillValue] of outside) {
    const error = await t.throwsAsync(fill(Class, fillValue), {
      instanceOf: RangeError,
      code: 'ERR_OUT_OF_RANGE',
    })
    t.regex(error.message, new RegExp(`for fillValue, as an? ${Class.name} holds, but received`))
  }
  const least = [
    [Int8Array, -128],
    [Uint32Array, 2 ** 32 - 1],
    [BigInt64Array, -(2n ** 63n)],
    [BigUint64Array, 2n ** 64n - 1n],
  ]
  for (const [Class, fillValue] of least)
    t.deepEqual(await fill(Class, fillValue), Class.of(fillValue))
  await t.throwsAsync(fill(Int32Array, 1n), { code: 'ERR_INVALID_ARG_TYPE' })
  await t.throwsAsync(fill(BigInt64Array, 1), { code: 'ERR_INVALID_ARG_TYPE' })
  await t.throwsAsync(fill(Float32Array, '1'), { code: 'ERR_INVALID_ARG_TYPE' })
  await t.throwsAsync(fill(Int32Array, undefined), { code: 'ERR_INVALID_ARG_VALUE' })
})

onEachDevice('every class of source, by every class of index', async (t, gather) => {
  for (const Source of Object.values(dtypes)) {
    const cast = isBigInt(Source) ? BigInt : Number
    const source = Source.from({ length: 100 }, (_, i) => cast(i))
    for (const Index of Object.values(dtypes).filter(isInteger)) {
      const castIndex = isBigInt(Index) ? BigInt : Number
      const index = Index.from([0, 99, 50, 7], castIndex)
      const result = await gather(source, index)
      t.deepEqual(result, Source.from([0, 99, 50, 7], cast))
    }
  }
})

onEachDevice('an index is taken by its value', async (t, gather) => {
  const source = f32(1, 2, 3)
  const outside = [
    [BigInt64Array, 4294967296n],
    [BigUint64Array, 2n ** 63n],
    [Uint32Array, 4294967295],
    [Uint16Array, 65535],
    [Uint8Array, 255],
  ]
  for (const [Class, index] of outside) {
    await rejectsAt(t, gather(source, Class.of(index)), { position: 0, index, length: 3 })
  }
  const bytes = Float32Array.from({ length: 256 }, (_, i) => i)
  t.deepEqual(await gather(bytes, Uint8Array.of(150, 255)), f32(150, 255))
  t.deepEqual(await gather(source, Int16Array.of(-1)), f32(3))
})

onEachDevice('out is written and returned', async (t, gather) => {
  const backing = new Float32Array(8).fill(9)
  const out = backing.subarray(2, 5)
  t.is(await gather(f32(1, 2, 3), i32(2, 1, 0), { out }), out)
  t.deepEqual(backing, f32(9, 9, 3, 2, 1, 9, 9, 9))
  const shared = new Float32Array(new SharedArrayBuffer(8))
  t.is(await gather(f32(1, 2), i32(1, 1), { out: shared }), shared)
  t.deepEqual([...shared], [2, 2])
})

onEachDevice('out is left alone where an index is bad', async (t, gather) => {
  for (const length of [3, 1_000_000]) {
    const out = new Float32Array(length).fill(9)
    const index = new Int32Array(length)
    index[length - 1] = 5
    const expected = { position: length - 1, index: 5, length: 2 }
    await rejectsAt(t, gather(f32(1, 2), index, { out }), expected)
    t.true(out.every((value) => value === 9))
  }
})

test('an out that does not fit', async (t) => {
  const call = (out) => cudaGather(f32(1, 2), i32(0, 1, 0), { out })
  const expected = 'Expected a Float32Array of length 3 for out'
  for (const [out, words] of [
    [new Float64Array(3), 'a Float64Array of length 3'],
    [[0, 0, 0], 'an Array of length 3'],
    [null, 'null'],
  ]) {
    await t.throwsAsync(call(out), {
      instanceOf: TypeError,
      code: 'ERR_INVALID_ARG_TYPE',
      message: `${expected} but received ${words}`,
    })
  }
  await t.throwsAsync(call(new Float32Array(4)), {
    instanceOf: TypeError,
    code: 'ERR_INVALID_ARG_VALUE',
    message: `${expected} (index.length * rowLength) but received one of length 4`,
  })
})

test('an out that overlaps what is read', async (t) => {
  const buffer = new ArrayBuffer(64)
  const source = new Float32Array(buffer, 0, 4)
  const refused = { instanceOf: TypeError, code: 'ERR_INVALID_ARG_VALUE' }
  const overlapping = new Float32Array(buffer, 12, 2)
  await t.throwsAsync(cudaGather(source, i32(0, 1), { out: overlapping }), {
    ...refused,
    message: /overlaps source$/,
  })
  const index = new Int32Array(buffer, 32, 2)
  const over = new Float32Array(buffer, 36, 2)
  await t.throwsAsync(cudaGather(source, index, { out: over }), {
    ...refused,
    message: /overlaps index$/,
  })
  const beside = new Float32Array(buffer, 16, 2)
  t.is(await cudaGather(source, index, { out: beside }), beside)
  // Nothing is shared with an array of no elements.
  const around = new Float32Array(buffer, 0, 4)
  const none = new Float32Array(buffer, 8, 0)
  t.is(await cudaGather(none, i32(0, 0, 0, 0), { mode: 'fill', out: around }), around)
})

test('a result larger than the runtime can make is an error, not a crash', async (t) => {
  const index = new Uint8Array(1 << 20)
  const promise = cudaGather(new Float64Array(1 << 20), index, { rowLength: 1 << 20 })
  await t.throwsAsync(promise, {
    instanceOf: RangeError,
    code: 'ERR_OUT_OF_RANGE',
    message: /^Float64Array of length 1099511627776 \(8796093022208 bytes\) could not be made/,
  })
  t.deepEqual(await cudaGather(f32(1), i32(0)), f32(1))
})

onEachDevice('a device that is not there is an error', async (t, gather) => {
  await t.throwsAsync(gather(f32(1), i32(0), { device: 'cuda:99' }), {
    code: 'ERR_CUDA_UNAVAILABLE',
    message: /^CUDA is not usable: /,
  })
  t.deepEqual(await gather(f32(1), i32(0), { device: 'auto' }), f32(1))
})
