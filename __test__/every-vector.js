// Every vector and some larger gathers with no test runner around them, for tools under which a test
// runner would take minutes: compute-sanitizer (scripts/gpu-run.sh) and valgrind
// (scripts/valgrind.sh).
//
//   node __test__/every-vector.js DEVICE

const assert = require('node:assert/strict')
const { cudaGather, cudaStatus, DeviceArray, explain, pinned } = require('../index.js')
const { sameBytes } = require('./helpers/assert.js')
const { vectors } = require('./helpers/vectors.js')

const device = process.argv[2]

async function check({ name, source, index, options, bytes, error }) {
  const gathering = cudaGather(source, index, { ...options, device })
  if (error) {
    await assert.rejects(gathering, { code: 'ERR_OUT_OF_RANGE', ...error }, name)
  } else {
    assert.ok(sameBytes(await gathering, bytes), name)
  }
}

/** The same along the other routes: from DeviceArrays in each place, and from and into pinned ones. */
async function checkRoutes({ name, source, index, options, bytes, error }) {
  const { rowLength, ...rest } = options
  for (const placement of ['device', 'pinned']) {
    const from = await DeviceArray.from(source, { device, rowLength, placement })
    const by = await DeviceArray.from(index, { device, placement })
    const gathering = from.gather(by, rest)
    if (error) await assert.rejects(gathering, { code: 'ERR_OUT_OF_RANGE', ...error }, name)
    else assert.ok(sameBytes(await gathering, bytes), `${name}, ${placement}`)
    from.dispose()
    by.dispose()
  }
}

/** Large enough to be read and written in place, in page-locked memory. */
async function largePinned() {
  const [source, index, out] = await Promise.all([
    pinned(Float32Array, 500_000),
    pinned(Int32Array, 400_000),
    pinned(Float32Array, 400_000),
  ])
  source.forEach((_, i) => {
    source[i] = i
  })
  index.forEach((_, i) => {
    index[i] = (i * 7919) % 500_000
  })
  const table = await DeviceArray.from(source, { device })
  for (let round = 0; round < 3; round++) {
    await table.gather(index, { out })
    assert.deepEqual(out, Float32Array.from(index))
    await cudaGather(source, index.subarray(0, 1000), { device, rowLength: 4, mode: 'wrap' })
    await cudaGather(source, index, { device, out, mode: 'clip' })
    const controller = new AbortController()
    const call = cudaGather(source, index, { device, signal: controller.signal })
    controller.abort()
    await assert.rejects(call, { code: 'ABORT_ERR' })
  }
  index[7] = 500_000
  await assert.rejects(table.gather(index, { out }), { position: 7 })
  table.dispose()
}

/** Arrays past the size that is copied, into an out, with and without a bad index. */
async function large() {
  const source = Float32Array.from({ length: 500_000 }, (_, i) => i)
  const index = Int32Array.from({ length: 400_000 }, (_, i) => (i * 7919) % 500_000)
  const out = new Float32Array(index.length)
  for (let round = 0; round < 5; round++) {
    await cudaGather(source, index, { device, out })
    assert.equal(out[399_999], index[399_999])
    const bad = index.slice()
    bad[399_999] = -5_000_000
    await assert.rejects(cudaGather(source, bad, { device, out }), { position: 399_999 })
    await assert.rejects(cudaGather(source, 'no'), { code: 'ERR_INVALID_ARG_TYPE' })
  }
  assert.match((await explain(source, index, { device })).device, new RegExp(`^${device}`))
  await cudaStatus()
}

async function main() {
  for (const vector of vectors) await check(vector)
  console.log(`${vectors.length} vectors one after the other`)
  // A few at a time, so that streams overlap.
  for (let start = 0; start < vectors.length; start += 16) {
    await Promise.all(vectors.slice(start, start + 16).map(check))
  }
  console.log(`${vectors.length} vectors 16 at a time`)
  for (const vector of vectors) await checkRoutes(vector)
  console.log(`${vectors.length} vectors along the other routes`)
  await large()
  await largePinned()
  console.log('larger gathers, good and bad')
}

main()
