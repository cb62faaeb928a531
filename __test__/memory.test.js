// How much idle memory is kept: setMemoryLimits, and what cudaStatus says of it.

const test = require('ava')
const { cudaGather, cudaStatus, DeviceArray, setMemoryLimits } = require('../index.js')
const { f32, i32 } = require('./helpers/arrays.js')
const { devices } = require('./helpers/machine.js')

const hasCuda = devices.includes('cuda')
const memory = async () => (await cudaStatus()).memory

test.serial('the limits are what was set, and what is beyond is freed', async (t) => {
  const { deviceBytes, pinnedBytes } = await memory()
  t.is(pinnedBytes.limit, 256 << 20)
  t.is(deviceBytes.limit !== null, hasCuda)

  const source = new Float32Array(4 << 20)
  const index = new Int32Array(1 << 20)
  await cudaGather(source, index)
  if (hasCuda) {
    const { deviceBytes, pinnedBytes } = await memory()
    // The source, and the staging of index and result beside the ring that the source came by.
    t.true(deviceBytes.kept >= 16 << 20, `${deviceBytes.kept}`)
    t.true(pinnedBytes.kept >= 8 << 20, `${pinnedBytes.kept}`)
  }
  t.is(await setMemoryLimits({ deviceBytes: 1 << 20 }), undefined)
  t.is((await memory()).deviceBytes.limit, 1 << 20)
  t.true((await memory()).deviceBytes.kept <= 1 << 20)
  t.is((await memory()).pinnedBytes.limit, 256 << 20)
  await setMemoryLimits({ deviceBytes: 0, pinnedBytes: 0 })
  t.like(await memory(), { deviceBytes: { limit: 0, kept: 0 }, pinnedBytes: { limit: 0, kept: 0 } })

  // Nothing is kept, and everything works.
  const array = await DeviceArray.from(source)
  t.is((await memory()).deviceBytes.used, hasCuda ? source.byteLength : 0)
  t.is((await array.gather(index)).length, index.length)
  t.is((await memory()).deviceBytes.kept, 0)
  t.is((await memory()).pinnedBytes.kept, 0)
  await setMemoryLimits({ deviceBytes: 64 << 20, pinnedBytes: 64 << 20 })
  await cudaGather(source, index)
  t.true((await memory()).deviceBytes.kept <= 64 << 20)
  t.true((await memory()).pinnedBytes.kept <= 64 << 20)
  array.dispose()
})

test.serial('limits that are none', async (t) => {
  const type = { instanceOf: TypeError, code: 'ERR_INVALID_ARG_TYPE' }
  const before = (await memory()).deviceBytes.limit
  for (const limits of [undefined, null, 5, [1]]) await t.throwsAsync(setMemoryLimits(limits), type)
  await t.throwsAsync(setMemoryLimits({ deviceBytes: '1' }), type)
  for (const deviceBytes of [-1, 0.5, Number.POSITIVE_INFINITY])
    await t.throwsAsync(setMemoryLimits({ deviceBytes }), {
      instanceOf: RangeError,
      code: 'ERR_OUT_OF_RANGE',
    })
  await t.throwsAsync(setMemoryLimits({ hostBytes: 1 }), {
    code: 'ERR_INVALID_ARG_VALUE',
    message: "Unknown option 'hostBytes'; the options are deviceBytes, pinnedBytes",
  })
  await setMemoryLimits({})
  t.is((await memory()).deviceBytes.limit, before)
  t.deepEqual(await cudaGather(f32(1, 2), i32(1)), f32(2))
})
