// What newer runtimes have. npm run test:nodes

const test = require('ava')
const { cudaGather } = require('../index.js')
const { f32, i32 } = require('./helpers/arrays.js')

const [major] = process.versions.node.split('.').map(Number)

const knowsUsing = () => {
  try {
    new Function('{ using nothing = null }')
    return true
  } catch {
    return false
  }
}

test('`using` disposes at the end of its block', async (t) => {
  t.is(knowsUsing(), major >= 24)
  if (!knowsUsing()) return
  const { outlived, result } = await require('./helpers/using.js')(f32(1, 2), i32(1, 0))
  t.deepEqual(result, f32(2, 1))
  await t.throwsAsync(outlived.gather(i32(0)), { code: 'ERR_DISPOSED' })
})

test('Float16Array', async (t) => {
  const { Float16Array } = globalThis
  t.is(typeof Float16Array, major >= 24 ? 'function' : 'undefined')
  if (!Float16Array) return
  const source = Float16Array.of(1.5, 65504, -0)
  const result = await cudaGather(source, i32(2, 0, 1))
  t.true(result instanceof Float16Array)
  t.deepEqual([...result], [-0, 1.5, 65504])
  const index = Float16Array.of(0)
  await t.throwsAsync(cudaGather(source, index), { code: 'ERR_INVALID_ARG_TYPE' })
})
