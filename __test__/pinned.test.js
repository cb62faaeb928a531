// Arrays in page-locked memory: pinned(), and placement 'pinned'.

const test = require('ava')
const { MessageChannel } = require('node:worker_threads')
const { DeviceArray, explain, pinned } = require('../index.js')
const { dtypes, f32, i32, isBigInt } = require('./helpers/arrays.js')
const { rejectsAt, sameBytes } = require('./helpers/assert.js')
const { root, runsClean } = require('./helpers/child.js')
const { onEachDevice } = require('./helpers/devices.js')
const { devices } = require('./helpers/machine.js')
const { vectors } = require('./helpers/vectors.js')

const copyOf = async (array) => {
  const copy = await pinned(Object.getPrototypeOf(array).constructor, array.length)
  copy.set(array)
  return copy
}

test('zeros of the class and length that were asked for', async (t) => {
  for (const Class of Object.values(dtypes)) {
    for (const length of [0, 1, 1000, 300_000]) {
      const array = await pinned(Class, length)
      t.is(Object.getPrototypeOf(array), Class.prototype)
      t.deepEqual([array.length, array.byteOffset], [length, 0])
      t.is(array.buffer.byteLength, length * Class.BYTES_PER_ELEMENT)
      const zero = isBigInt(Class) ? 0n : 0
      t.true(array.every((element) => element === zero))
      // What goes back to the pool is not what the next one finds there.
      array.fill(isBigInt(Class) ? 7n : 7)
    }
  }
})

test('arguments that make no array', async (t) => {
  const type = { instanceOf: TypeError, code: 'ERR_INVALID_ARG_TYPE' }
  for (const Class of [undefined, null, 'Float32Array', Array, DataView, f32(1), class {}]) {
    await t.throwsAsync(pinned(Class, 1), { ...type, message: /a typed-array class, such as/ })
  }
  await t.throwsAsync(pinned(Float32Array), type)
  await t.throwsAsync(pinned(Float32Array, '3'), { ...type, message: /for length but received/ })
  const range = { instanceOf: RangeError, code: 'ERR_OUT_OF_RANGE' }
  for (const length of [-1, 0.5, Number.NaN, 2 ** 53, 2 ** 52])
    await t.throwsAsync(pinned(Float32Array, length), range)
})

onEachDevice('every vector, from and into page-locked memory', async (t, gather) => {
  for (const { name, source, index, options, bytes, error } of vectors) {
    const [from, by] = await Promise.all([copyOf(source), copyOf(index)])
    const length = index.length * (options.rowLength ?? 1)
    const out = await pinned(Object.getPrototypeOf(source).constructor, length)
    if (error) {
      await rejectsAt(t, gather(from, by, options), error)
      await rejectsAt(t, gather(from, by, { ...options, out }), error)
    } else {
      t.true(sameBytes(await gather(from, by, options), bytes), name)
      t.is(await gather(source, by, { ...options, out }), out)
      t.true(sameBytes(out, bytes), name)
    }
  }
})

onEachDevice('every vector, from an array placed there', async (t, _gather, device) => {
  for (const { name, source, index, options, bytes, error } of vectors) {
    const { rowLength, ...rest } = options
    const array = await DeviceArray.from(source, { device, rowLength, placement: 'pinned' })
    const by = await DeviceArray.from(index, { device, placement: 'pinned' })
    for (const each of [index, by]) {
      if (error) await rejectsAt(t, array.gather(each, rest), error)
      else t.true(sameBytes(await array.gather(each, rest), bytes), name)
    }
    array.dispose()
    by.dispose()
  }
})

/** Big enough to be used in place, in several pieces. */
const large = async () => {
  const length = 600_000
  const source = await pinned(Float32Array, length)
  for (let i = 0; i < length; i++) source[i] = i
  const index = await pinned(Int32Array, length)
  for (let i = 0; i < length; i++) index[i] = (i * 7919) % length
  return { source, index, expected: Float32Array.from(index) }
}

onEachDevice('large ones are used in place', async (t, gather, device) => {
  const { source, index, expected } = await large()
  const out = await pinned(Float32Array, index.length)
  t.deepEqual(await gather(source, index), expected)
  t.is(await gather(source, index, { out }), out)
  t.deepEqual(out, expected)
  const rows = await gather(source, index.subarray(0, 1000), { rowLength: 300, mode: 'wrap' })
  for (let i = 0; i < 1000; i++) t.is(rows[i * 300 + 7], (index[i] % 2000) * 300 + 7)

  // A piece of one counts as one too; what reaches past its end does not.
  t.deepEqual(
    await gather(
      source.subarray(1),
      index.map((at) => at && at - 1),
    ),
    expected.map((at) => at || 1),
  )

  const table = await DeviceArray.from(source, { device, placement: 'pinned' })
  t.deepEqual(await table.gather(index), expected)
  await table.update(0, f32(-1))
  t.is((await table.gather(i32(0)))[0], -1)
  t.is((await table.toHost())[599_999], 599_999)
  table.dispose()
})

onEachDevice('a bad index: where it is, and what out holds', async (t, gather, device) => {
  const { source, index, expected } = await large()
  index[555_555] = -600_001
  index[599_999] = 600_000
  const out = (await pinned(Float32Array, index.length)).fill(-1)
  const bad = { position: 555_555, index: -600_001, length: 600_000 }
  await rejectsAt(t, gather(source, index, { out }), bad)
  t.is(out[555_555], -1)
  // On a device the kernel writes there by itself; on the CPU it is left as it was.
  const isUntouched = out.every((element) => element === -1)
  const isWritten = out.every((element, i) => element === expected[i] || element === -1)
  t.true(device === 'cpu' ? isUntouched : isWritten)
  await rejectsAt(t, gather(source, index), bad)
})

test('explain: few bytes are read in place, many are copied', async (t) => {
  const { source, index } = await large()
  const few = index.subarray(0, 1000)
  const onCuda = (await explain(source, few)).device !== 'cpu'
  const route = async (...call) => {
    const { route, bytesToDevice } = await explain(...call)
    return [route, bytesToDevice]
  }
  t.deepEqual(await route(source, few), onCuda ? ['mapped', 1000 * (32 + 4)] : ['cpu', 0])
  t.deepEqual(await route(source, index), onCuda ? ['upload', 4_800_000] : ['cpu', 0])
  t.deepEqual(await route(source, few, { device: 'auto' }), ['cpu', 0])
  const table = await DeviceArray.from(source, { placement: 'pinned' })
  t.deepEqual(await route(table, few), onCuda ? ['mapped', 1000 * (32 + 4)] : ['cpu', 0])
  t.deepEqual(await route(table, few, { device: 'auto' }), ['cpu', 0])
  t.deepEqual(await table.gather(few, { device: 'auto' }), Float32Array.from(few))
})

onEachDevice('moved away in mid gather, its memory stays until that is done', async (t, gather) => {
  // Without CUDA it is an ordinary array, whose memory goes with its buffer.
  if (!devices.includes('cuda')) return t.pass()
  const { source, index, expected } = await large()
  for (let round = 0; round < 10; round++) {
    const array = await copyOf(source)
    const gathering = gather(array, index)
    try {
      const { port1, port2 } = new MessageChannel()
      port1.postMessage(array, [array.buffer])
      port1.close()
      port2.close()
    } catch (error) {
      // Node 22 and later refuse to move memory that is not their own.
      t.is(error.name, 'DataCloneError')
    }
    const [{ value, reason }] = await Promise.allSettled([gathering])
    if (reason) t.is(reason.code, 'ERR_INVALID_ARG_TYPE')
    else t.deepEqual(value, expected)
  }
})

test('options that place no array', async (t) => {
  await t.throwsAsync(DeviceArray.from(f32(1), { placement: 'host' }), {
    code: 'ERR_INVALID_ARG_VALUE',
    message: "Expected 'device' or 'pinned' for placement but received string 'host'",
  })
  await t.throwsAsync(DeviceArray.from(f32(1), { placement: 1 }), { code: 'ERR_INVALID_ARG_TYPE' })
})

onEachDevice('arrays that are abandoned go back to the pool', async (t, _gather, device) => {
  const stdout = await runsClean(
    t,
    `
    const { DeviceArray, pinned, setMemoryLimits } = require(${JSON.stringify(root)})
    const device = ${JSON.stringify(device)}
    const limit = 8 << 20
    await setMemoryLimits({ pinnedBytes: limit, deviceBytes: limit })
    let most = 0
    for (let round = 0; round < 5000; round++) {
      const array = await pinned(Float32Array, 1 << 16)
      await cudaGather(array, Int32Array.of(round), { device })
      const placement = round % 2 ? 'pinned' : 'device'
      await DeviceArray.from(array, { device, placement })
      if (round % 100) continue
      globalThis.gc()
      await new Promise((resolve) => setImmediate(resolve))
      for (const { used, kept } of Object.values((await cudaStatus()).memory)) {
        most = Math.max(most, used)
        if (kept > limit) throw new Error(kept + ' bytes kept')
      }
    }
    // Two arrays of 256 KiB a round, and a hundred rounds between collections.
    console.log(most < 100 * 3 * (256 << 10) + limit ? 'steady' : most)`,
    { args: ['--expose-gc'] },
  )
  t.is(stdout.trim(), 'steady')
})
