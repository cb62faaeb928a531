// Arrays that live where gathers run.

const test = require('ava')
const { inspect } = require('node:util')
const vm = require('node:vm')
const { cudaGather, DeviceArray, explain } = require('../index.js')
const { dtypes, f32, i32, isBigInt } = require('./helpers/arrays.js')
const { agreesWithModel, rejectsAt, sameBytes } = require('./helpers/assert.js')
const { onEachDevice } = require('./helpers/devices.js')
const { vectors } = require('./helpers/vectors.js')

const DISPOSED = { code: 'ERR_DISPOSED', instanceOf: Error }

onEachDevice(
  'every vector, with a resident source, and a resident index',
  async (t, _gather, device) => {
    for (const { name, source, index, options, bytes, error } of vectors) {
      const { rowLength } = options
      const resident = await DeviceArray.from(source, { device, rowLength })
      const indices = await DeviceArray.from(index, { device })
      const { rowLength: _own, ...rest } = options
      for (const each of [index, indices]) {
        const gathering = resident.gather(each, rest)
        if (error) await rejectsAt(t, gathering, error)
        else t.true(sameBytes(await gathering, bytes), name)
      }
      const gathering = cudaGather(source, indices, options)
      if (error) await rejectsAt(t, gathering, error)
      else t.true(sameBytes(await gathering, bytes), name)
      resident.dispose()
      indices.dispose()
    }
  },
)

onEachDevice('what it is, and that it comes back', async (t, _gather, device) => {
  for (const [dtype, Class] of Object.entries(dtypes)) {
    const source = Class.from({ length: 12 }, (_, i) => (isBigInt(Class) ? BigInt(i) : i))
    const array = await DeviceArray.from(source, { device, rowLength: 4 })
    const { length, rowLength, byteLength } = array
    t.deepEqual(
      { length, rowLength, byteLength, dtype: array.dtype },
      { length: 12, rowLength: 4, byteLength: source.byteLength, dtype },
    )
    t.regex(array.device, new RegExp(`^${device}`))
    const back = await array.toHost()
    t.deepEqual(back, source)
    t.not(back.buffer, source.buffer)
  }
  const empty = await DeviceArray.from(f32(), { device })
  t.deepEqual(await empty.toHost(), f32())
  t.deepEqual(await empty.gather(i32()), f32())
  await rejectsAt(t, empty.gather(i32(0)), { position: 0, index: 0, length: 0 })
})

onEachDevice('it holds the elements of the time it was made', async (t, _gather, device) => {
  const source = f32(1, 2, 3)
  const array = await DeviceArray.from(source, { device })
  source.fill(9)
  t.deepEqual(await array.gather(i32(2, 0)), f32(3, 1))
})

onEachDevice(
  'an input of up to 1 MiB may be changed or moved as soon as the call returns',
  async (t, _gather, device) => {
    for (let round = 0; round < 50; round++) {
      // So that the pool is busy when the call is made.
      const busy = Array.from({ length: 8 }, () =>
        DeviceArray.from(new Float32Array(1000), { device }),
      )
      const source = f32(1, 2, 3)
      const making = DeviceArray.from(source, { device })
      source.fill(7)
      structuredClone(source, { transfer: [source.buffer] })
      const array = await making
      const values = f32(20, 30)
      const updating = array.update(1, values)
      values.fill(8)
      await updating
      t.deepEqual(await array.toHost(), f32(1, 20, 30))
      await Promise.all(busy)
    }
  },
)

onEachDevice(
  'an index that is updated meanwhile is checked as it is used',
  async (t, _gather, device) => {
    const length = 200_000
    const source = await DeviceArray.from(f32(5, 6), { device })
    const index = await DeviceArray.from(new Int32Array(length), { device })
    const [good, bad] = [new Int32Array(length).fill(1), new Int32Array(length).fill(9)]
    for (let round = 0; round < 20; round++) {
      const [{ value, reason }] = await Promise.allSettled([
        source.gather(index),
        index.update(0, round % 2 ? good : bad),
      ])
      if (value) t.true(value.every((element) => element === 5 || element === 6))
      else t.is(reason.index, 9)
    }
  },
)

onEachDevice('a result can stay, and be gathered from in its turn', async (t, _gather, device) => {
  const array = await DeviceArray.from(f32(0, 1, 2, 3, 4, 5), { device, rowLength: 2 })
  const rows = await array.gather(i32(2, 0), { result: 'device' })
  t.true(rows instanceof DeviceArray)
  t.deepEqual([rows.length, rows.rowLength, rows.dtype], [4, 2, 'float32'])
  array.dispose()
  t.deepEqual(await rows.toHost(), f32(4, 5, 0, 1))
  t.deepEqual(await rows.gather(i32(-1)), f32(0, 1))
  const none = await rows.gather(i32(), { result: 'device' })
  t.deepEqual([none.length, ...(await none.toHost())], [0])
  const fromHost = await cudaGather(f32(1, 2), i32(1), { device, result: 'device' })
  t.deepEqual(await fromHost.toHost(), f32(2))
  await rejectsAt(t, rows.gather(i32(0, 2), { result: 'device' }), {
    position: 1,
    index: 2,
    length: 2,
  })
})

onEachDevice('update writes in place', async (t, _gather, device) => {
  const array = await DeviceArray.from(f32(1, 2, 3, 4), { device })
  t.is(await array.update(1, f32(20, 30)), undefined)
  t.deepEqual(await array.toHost(), f32(1, 20, 30, 4))
  await array.update(4, f32())
  const outside = { instanceOf: RangeError, code: 'ERR_OUT_OF_RANGE' }
  await t.throwsAsync(array.update(3, f32(1, 2)), {
    ...outside,
    message: /at most 1 values from offset 3/,
  })
  for (const offset of [-1, 5, 0.5, Number.NaN])
    await t.throwsAsync(array.update(offset, f32()), outside)
  await t.throwsAsync(array.update(0, i32(1)), {
    code: 'ERR_INVALID_ARG_TYPE',
    message: /a Float32Array for values/,
  })
  await t.throwsAsync(array.update('0', f32(1)), { code: 'ERR_INVALID_ARG_TYPE' })
  t.deepEqual(await array.toHost(), f32(1, 20, 30, 4))
})

onEachDevice('gathers that have begun outlive the array', async (t, _gather, device) => {
  const source = Float32Array.from({ length: 1 << 20 }, (_, i) => i)
  const index = Int32Array.from({ length: 1 << 20 }, (_, i) => i)
  const array = await DeviceArray.from(source, { device })
  const gathering = array.gather(index)
  const reading = array.toHost()
  // Of the same values, so that the others may see old or new ones.
  const uploading = array.update(0, source)
  t.false(array.disposed)
  array.dispose()
  array.dispose()
  t.true(array.disposed)
  t.true(sameBytes(await gathering, source))
  t.true(sameBytes(await reading, source))
  t.is(await uploading, undefined)
  await t.throwsAsync(array.gather(i32(0)), { ...DISPOSED, message: 'source was disposed of' })
  await t.throwsAsync(cudaGather(f32(1), array), { ...DISPOSED, message: 'index was disposed of' })
  await t.throwsAsync(array.toHost(), DISPOSED)
  await t.throwsAsync(array.update(0, f32(1)), DISPOSED)
  t.is(array.length, 1 << 20)
})

test('using disposes', async (t) => {
  const array = await DeviceArray.from(f32(1))
  array[Symbol.dispose]()
  await t.throwsAsync(array.gather(i32(0)), DISPOSED)
})

onEachDevice('explain: what is there is not moved', async (t, _gather, device) => {
  const source = f32(1, 2, 3, 4)
  const index = i32(0, 1)
  const [array, indices] = await Promise.all(
    [source, index].map((each) => DeviceArray.from(each, { device })),
  )
  const where = array.device
  const onCpu = { route: 'cpu', device: 'cpu', bytesToDevice: 0, bytesFromDevice: 0 }
  const expected = (route, bytesToDevice, bytesFromDevice) =>
    where === 'cpu' ? onCpu : { route, device: where, bytesToDevice, bytesFromDevice }
  t.deepEqual(await explain(array, index), expected('resident', 8, 8))
  t.deepEqual(await explain(array, indices), expected('resident', 0, 8))
  t.deepEqual(await explain(array, indices, { result: 'device' }), expected('resident', 0, 0))
  t.deepEqual(await explain(source, indices), expected('upload', 16, 8))
  t.deepEqual(await explain(source, index, { device }), expected('upload', 24, 8))
  t.deepEqual(await explain(source, index, { device: 'auto' }), onCpu)
  t.deepEqual(await explain(array, index, { device: 'auto' }), expected('resident', 8, 8))
})

onEachDevice("a device that is not the array's is an error", async (t, _gather, device) => {
  const array = await DeviceArray.from(f32(1), { device })
  const other = device === 'cpu' ? 'cuda:5' : 'cpu'
  await t.throwsAsync(array.gather(i32(0), { device: other }), {
    instanceOf: TypeError,
    code: 'ERR_INVALID_ARG_VALUE',
    message: `Expected arrays and device in one place but received ${array.device} and ${other}`,
  })
  t.deepEqual(await array.gather(i32(0), { device }), f32(1))
})

test('options and arguments that make no array', async (t) => {
  const refused = (promise, code, message) =>
    t.throwsAsync(promise, message ? { code, message } : { code })
  await refused(
    DeviceArray.from([1]),
    'ERR_INVALID_ARG_TYPE',
    /a typed array for source but received an Array/,
  )
  await refused(DeviceArray.from(), 'ERR_INVALID_ARG_TYPE')
  await refused(
    DeviceArray.from(f32(1, 2, 3), { rowLength: 2 }),
    'ERR_INVALID_ARG_VALUE',
    /whole rows/,
  )
  await refused(
    DeviceArray.from(f32(1), { mode: 'wrap' }),
    'ERR_INVALID_ARG_VALUE',
    "Unknown option 'mode'; the options are rowLength, device, placement",
  )
  await refused(DeviceArray.from(f32(1), { device: 'cuda:77' }), 'ERR_CUDA_UNAVAILABLE')
  const array = await DeviceArray.from(f32(1))
  await refused(DeviceArray.from(array), 'ERR_INVALID_ARG_TYPE')
  await refused(
    cudaGather(f32(1), array),
    'ERR_INVALID_ARG_TYPE',
    /received a DeviceArray of float32$/,
  )
  await refused(
    array.gather(i32(0), { result: 'gpu' }),
    'ERR_INVALID_ARG_VALUE',
    /'host' or 'device' for result/,
  )
  await refused(array.gather(i32(0), { result: 'device', out: f32(1) }), 'ERR_INVALID_ARG_VALUE')
  await refused(array.gather(i32(0), { out: array }), 'ERR_INVALID_ARG_TYPE')
  t.throws(() => new DeviceArray(), { instanceOf: TypeError, code: 'ERR_ILLEGAL_CONSTRUCTOR' })
})

/** What a worker would get, where the runtime lets it be sent: nothing of the array. */
function copyOf(array) {
  try {
    return structuredClone(array)
  } catch (error) {
    return error
  }
}

test('it is not sent to a worker', async (t) => {
  const copy = copyOf(await DeviceArray.from(f32(1)))
  if ('markAsUncloneable' in require('node:worker_threads')) t.is(copy.name, 'DataCloneError')
  else t.deepEqual(copy, {})
})

test('what only looks like one is none', async (t) => {
  const array = await DeviceArray.from(f32(1))
  const forgeries = [
    Object.create(DeviceArray.prototype),
    Object.setPrototypeOf({}, DeviceArray.prototype),
    new Proxy(array, {}),
    copyOf(array),
    vm.runInNewContext('({ length: 1 })'),
  ]
  for (const forged of forgeries) {
    t.is(typeof inspect(forged), 'string')
    await t.throwsAsync(cudaGather(forged, i32(0)), { code: 'ERR_INVALID_ARG_TYPE' })
    for (const name of ['gather', 'toHost', 'update']) {
      const call = DeviceArray.prototype[name].call(forged, i32(0), f32(1))
      await t.throwsAsync(call, { instanceOf: TypeError, code: 'ERR_INVALID_ARG_TYPE' })
    }
    t.throws(() => DeviceArray.prototype.dispose.call(forged), { instanceOf: TypeError })
  }
})

onEachDevice('many from one, at once', async (t, _gather, device) => {
  const source = Float32Array.from({ length: 5000 }, (_, i) => i)
  const array = await DeviceArray.from(source, { device })
  const gather = (_source, index, options) => array.gather(index, options)
  await Promise.all(
    Array.from({ length: 64 }, (_, k) =>
      agreesWithModel(
        t,
        gather,
        source,
        Int32Array.from({ length: 300 }, (_, i) => (i * k) % 5001),
      ),
    ),
  )
})
