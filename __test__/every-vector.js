// Every vector and some larger gathers with no test runner around them, for tools under which a test
// runner would take minutes: compute-sanitizer (scripts/gpu-run.sh) and valgrind
// (scripts/valgrind.sh).
//
//   node __test__/every-vector.js DEVICE

const assert = require('node:assert/strict')
const { cudaGather, cudaStatus, explain } = require('../index.js')
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
  await large()
  console.log('larger gathers, good and bad')
}

main()
