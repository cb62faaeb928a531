// The main job, as its users meet it.

const test = require('ava')
const { cudaGather } = require('../index.js')
const { bytesOf, f32, i32 } = require('./helpers/arrays.js')
const { agreesWithModel, rejectsAt, sameBytes } = require('./helpers/assert.js')
const { onEachDevice } = require('./helpers/devices.js')

test('the default device gathers', async (t) => {
  t.deepEqual(await cudaGather(f32(10, 20, 30), i32(2, 0, -1)), f32(30, 10, 30))
})

onEachDevice('a million indices', async (t, gather) => {
  const source = Float32Array.from({ length: 100_003 }, (_, i) => i * 0.5)
  const index = Int32Array.from({ length: 1 << 20 }, (_, i) => ((i * 7919) % 200_006) - 100_003)
  await agreesWithModel(t, gather, source, index)
})

onEachDevice('the result is an ordinary array with a buffer of its own', async (t, gather) => {
  const results = await Promise.all([0, 1].map(() => gather(f32(1, 2), i32(1, 1, 0))))
  for (const result of results) {
    t.is(Object.getPrototypeOf(result), Float32Array.prototype)
    t.is(result.byteOffset, 0)
    t.is(result.buffer.byteLength, result.byteLength)
    t.is(Object.prototype.toString.call(result.buffer), '[object ArrayBuffer]')
  }
  t.not(results[0].buffer, results[1].buffer)
  const moved = structuredClone(results[0], { transfer: [results[0].buffer] })
  t.deepEqual(moved, f32(2, 2, 1))
  t.is(results[0].length, 0)
  t.deepEqual(results[1], f32(2, 2, 1))
})

onEachDevice('a bad index says where, what and how many', async (t, gather) => {
  const position = (i) => ({ position: i.at, index: i.value, length: i.rows })
  const cases = [
    [f32(1, 1, 1, 1), i32(0, 5), { at: 1, value: 5, rows: 4 }],
    [f32(0, 1, 2, 3, 4), i32(0, 1, 2, 3, 4, 5, 6), { at: 5, value: 5, rows: 5 }],
    [f32(10, 20, 30), i32(-2147483648), { at: 0, value: -2147483648, rows: 3 }],
    [f32(1, 2, 3), i32(0, 7, 9), { at: 1, value: 7, rows: 3 }],
    [f32(1, 2, 3), i32(-3, -4), { at: 1, value: -4, rows: 3 }],
    [f32(), i32(0), { at: 0, value: 0, rows: 0 }],
  ]
  for (const [source, index, expected] of cases) {
    await rejectsAt(t, gather(source, index), position(expected))
  }
})

onEachDevice('the error names the first bad position on every run', async (t, gather) => {
  const length = 10_000_000
  const index = new Int32Array(length)
  index[9_999_999] = 9
  index[123_456] = -5
  index[5_000_000] = 2_000_000_000
  const expected = { position: 123_456, index: -5, length: 3 }
  const source = f32(1, 2, 3)
  for (let round = 0; round < 200; round++) await rejectsAt(t, gather(source, index), expected)

  // Many at once, each with a first bad position of its own, good calls between them.
  const calls = Array.from({ length: 16 }, async (_, k) => {
    const own = new Int32Array(1_000_000)
    own[999_999] = 77
    own[1000 * k + 1] = 3 + k
    await rejectsAt(t, gather(source, own), { position: 1000 * k + 1, index: 3 + k, length: 3 })
  })
  const good = Array.from({ length: 16 }, () => gather(source, i32(2, 1, 0)))
  await Promise.all(calls)
  for (const result of await Promise.all(good)) t.deepEqual(result, f32(3, 2, 1))
})

onEachDevice('one bad index spoils no other call', async (t, gather) => {
  const source = Float32Array.from({ length: 1000 }, (_, i) => i)
  const settled = await Promise.allSettled(
    Array.from({ length: 51 }, (_, k) => gather(source, i32(k === 25 ? 1000 : k))),
  )
  t.deepEqual(
    settled.map(({ value, reason }, k) => (k === 25 ? reason?.position : value?.[0])),
    Array.from({ length: 51 }, (_, k) => (k === 25 ? 0 : k)),
  )
  for (let round = 0; round < 100; round++) {
    t.deepEqual(await gather(source, i32(round)), f32(round))
  }
})

onEachDevice('nothing to gather gives an empty array, in every mode', async (t, gather) => {
  for (const mode of ['raise', 'wrap', 'clip', 'fill']) {
    for (const rowLength of [1, 3]) {
      for (const source of [new Float32Array(3), new Float32Array(0)]) {
        const result = await gather(source, i32(), { mode, rowLength })
        t.is(result.length, 0)
        new Float32Array(3).set(result)
        t.is(structuredClone(result).length, 0)
      }
    }
  }
})

onEachDevice('no rows hold no index', async (t, gather) => {
  for (const mode of ['raise', 'wrap', 'clip']) {
    for (const rowLength of [1, 3]) {
      const expected = { position: 0, index: 0, length: 0 }
      await rejectsAt(t, gather(f32(), i32(0), { mode, rowLength }), expected)
    }
  }
  const filled = await gather(f32(), i32(0, -1), { mode: 'fill', fillValue: 7, rowLength: 2 })
  t.deepEqual(filled, f32(7, 7, 7, 7))
})

onEachDevice('bits come out as they went in', async (t, gather) => {
  const patterns = [0x7f800001, 0xffc12345, 0x80000000, 0x00000001, 0x007fffff, 0xff800000]
  const source = new Float32Array(Uint32Array.from(patterns).buffer)
  const index = i32(0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0, 0, 0)
  const result = await gather(source, index)
  t.deepEqual(
    [...new Uint32Array(result.buffer)],
    [...index].map((i) => patterns[i]),
  )
  const doubles = [0x7ff0000000000001n, 0xfff8123456789abcn, 1n << 63n, 1n, 0xfffffffffffffn]
  const wide = await gather(
    new Float64Array(BigUint64Array.from(doubles).buffer),
    i32(4, 3, 2, 1, 0),
  )
  t.deepEqual([...new BigUint64Array(wide.buffer)], doubles.toReversed())
})

onEachDevice(
  'an input of up to 1 MiB may be changed as soon as the call returns',
  async (t, gather) => {
    for (let round = 0; round < 100; round++) {
      const source = f32(1, 2, 3)
      const index = i32(2, 1, 0)
      const promise = gather(source, index)
      index.fill(1_000_000_000)
      source.fill(Number.NaN)
      t.deepEqual(await promise, f32(3, 2, 1))
    }
  },
)

onEachDevice(
  'a large index that changes in flight is never followed outside',
  async (t, gather) => {
    const source = Float32Array.from({ length: 1000 }, (_, i) => i)
    for (let round = 0; round < 20; round++) {
      const index = new Int32Array(1 << 20).fill(7)
      const promise = gather(source, index)
      // While the task reads: each value is either the old or the new one.
      await new Promise(setImmediate)
      index.fill(1_000_000_000)
      const [{ value, reason }] = await Promise.allSettled([promise])
      if (value) t.true(value.every((element) => element === 7))
      else t.is(reason.index, 1_000_000_000)
    }
  },
)

onEachDevice('a SharedArrayBuffer is read as it is', async (t, gather) => {
  const source = new Float32Array(new SharedArrayBuffer(16))
  source.set([1, 2, 3, 4])
  const index = new Int32Array(new SharedArrayBuffer(8))
  index.set([3, -4])
  const result = await gather(source, index)
  t.true(sameBytes(result, f32(4, 1)))
  t.is(bytesOf(result).buffer.constructor, ArrayBuffer)
})
