// Every vector on the CUDA device, with no test runner around it: for compute-sanitizer, under
// which a test runner would take minutes.
//
//   compute-sanitizer --tool memcheck --error-exitcode 9 node __test__/on-device.js

const assert = require('node:assert/strict')
const { cudaGather } = require('../index.js')
const { sameBytes } = require('./helpers/assert.js')
const { vectors } = require('./helpers/vectors.js')

const device = 'cuda'

async function check({ name, source, index, options, bytes, error }) {
  const gathering = cudaGather(source, index, { ...options, device })
  if (error) {
    await assert.rejects(gathering, { code: 'ERR_OUT_OF_RANGE', ...error }, name)
  } else {
    assert.ok(sameBytes(await gathering, bytes), name)
  }
}

async function main() {
  for (const vector of vectors) await check(vector)
  console.log(`${vectors.length} vectors one after the other`)
  // A few at a time, so that streams overlap.
  for (let start = 0; start < vectors.length; start += 16) {
    await Promise.all(vectors.slice(start, start + 16).map(check))
  }
  console.log(`${vectors.length} vectors 16 at a time`)
}

main()
