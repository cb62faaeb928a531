// What is done while a driver call fails. `step` is a gather that is checked: it must give what the
// slow model gives, or reject with a documented error for the fault at hand; `step.attempt` is for
// promises of another kind. To add a scenario, add a function here.

const { Worker } = require('node:worker_threads')
const assert = require('node:assert/strict')
const {
  cudaGather,
  cudaStatus,
  DeviceArray,
  explain,
  pinned,
  setMemoryLimits,
} = require('../../index.js')
const { f32, i32 } = require('../helpers/arrays.js')

const numbers = (length) => Float32Array.from({ length }, (_, i) => i)
const indices = (length, rows) =>
  Int32Array.from({ length }, (_, i) => ((i * 7919) % (2 * rows)) - rows)

module.exports = {
  'the same call twice': async (step) => {
    const [source, index] = [numbers(1000), indices(500, 1000)]
    await step(source, index)
    await step(source, index)
  },

  'a small call, then one that needs more room': async (step) => {
    await step(numbers(10), i32(1, -1))
    await step(numbers(20_000), indices(30_000, 20_000))
  },

  'arrays of several MiB, by way of the ring': async (step) => {
    const table = numbers(300_000)
    await step(table, indices(150_000, 300_000))
    await step(table, indices(150_000, 300_000), { out: new Float32Array(150_000) })
  },

  rows: async (step) => {
    await step(
      Uint16Array.from({ length: 500 }, (_, i) => i),
      Uint8Array.of(99, 0, 7),
      { rowLength: 5 },
    )
    await step(numbers(64), BigInt64Array.of(-1n, 3n), { rowLength: 16 })
  },

  'each mode': async (step) => {
    const index = i32(3, -4, 2147483647, -2147483648)
    for (const mode of ['wrap', 'clip', 'fill']) await step(f32(1, 2, 3), index, { mode })
  },

  'a bad index': async (step) => {
    await step(f32(1, 2, 3), i32(0, 3, 9))
    await step(f32(1, 2, 3), i32(0, 1, 2), { out: new Float32Array(3) })
  },

  'many at once': async (step) => {
    const calls = Array.from({ length: 8 }, (_, k) => step(numbers(100 + k), indices(200, 100)))
    await Promise.all([...calls, step(f32(1), i32(5))])
  },

  'a resident array': async (step) => {
    const { attempt, device } = step
    const array = await attempt(DeviceArray.from(f32(1, 2, 3, 4), { device, rowLength: 2 }))
    if (!array) return
    await attempt(array.update(0, f32(9)))
    const rows = await attempt(array.gather(i32(1, 1), { result: 'device' }))
    const back = rows && (await attempt(rows.toHost()))
    if (back) assert.deepEqual([...back], [3, 4, 3, 4])
    const bad = await Promise.allSettled([array.gather(i32(0, 5))])
    if (bad[0].reason.code === 'ERR_OUT_OF_RANGE') assert.equal(bad[0].reason.position, 1)
    else await attempt(Promise.reject(bad[0].reason))
    array.dispose()
    rows?.dispose()
    await step(f32(1), i32(0))
  },

  'page-locked arrays': async (step) => {
    const { attempt, device } = step
    const [source, index] = [numbers(300_000), indices(300_000, 300_000)]
    const from = await attempt(pinned(Float32Array, source.length))
    const by = await attempt(pinned(Int32Array, index.length))
    const out = await attempt(pinned(Float32Array, index.length))
    if (!from || !by || !out) return
    from.set(source)
    by.set(index)
    await step(from, by)
    await step(from, by.subarray(0, 1000), { out: out.subarray(0, 1000) })
    await step(from, by, { rowLength: 3, mode: 'wrap', out: new Float32Array(900_000) })
    const table = await attempt(DeviceArray.from(source, { device, placement: 'pinned' }))
    const rows = table && (await attempt(table.gather(i32(5, 6), { result: 'device' })))
    const back = rows && (await attempt(rows.toHost()))
    if (back) assert.deepEqual([...back], [5, 6])
    table?.dispose()
    rows?.dispose()
    await attempt(setMemoryLimits({ pinnedBytes: 1 << 20 }))
    await step(f32(1), i32(0))
    await attempt(setMemoryLimits({ pinnedBytes: 256 << 20 }))
  },

  'calls that are aborted': async (step) => {
    const { device } = step
    const controller = new AbortController()
    const { signal } = controller
    const [source, index] = [numbers(700_000), indices(600_000, 700_000)]
    const calls = Array.from({ length: 6 }, () => cudaGather(source, index, { device, signal }))
    setImmediate(() => controller.abort())
    for (const outcome of await Promise.allSettled(calls)) {
      if (outcome.reason?.code !== 'ABORT_ERR')
        await step.attempt(outcome.reason ? Promise.reject(outcome.reason) : outcome.value)
    }
    await step(f32(1, 2), i32(1), { signal: new AbortController().signal })
  },

  'a worker that is ended in mid gather': async (step) => {
    const work = `
      const { DeviceArray } = require(${JSON.stringify(require.resolve('../../index.js'))})
      const { parentPort } = require('node:worker_threads')
      const main = async () => {
        const table = await DeviceArray.from(new Float32Array(50_000), { device: 'cuda' })
        for (let k = 0; k < 6; k++) table.gather(new Int32Array(300_000)).catch(() => {})
      }
      main().catch(() => {}).finally(() => parentPort.postMessage('begun'))`
    const worker = new Worker(work, { eval: true })
    await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
    await worker.terminate()
    await step(f32(1), i32(0))
  },

  'status and route': async (step) => {
    await cudaStatus()
    await explain(f32(1), i32(0), { device: 'cuda' }).catch(() => {})
    await step(f32(1), i32(0))
  },

  'two workers': async (step) => {
    const work = `
      const { cudaGather } = require(${JSON.stringify(require.resolve('../../index.js'))})
      const { parentPort } = require('node:worker_threads')
      cudaGather(new Float32Array([1, 2, 3]), new Int32Array([2, 0]), { device: 'cuda' })
        .then((result) => parentPort.postMessage([...result]), (error) => parentPort.postMessage(error.code))`
    const outcome = () =>
      new Promise((resolve, reject) => {
        new Worker(work, { eval: true }).once('message', resolve).once('error', reject)
      })
    for (const result of await Promise.all([outcome(), outcome()])) {
      if (String(result) !== '3,1' && !/^ERR_CUDA/.test(result)) throw new Error(`got ${result}`)
    }
    await step(f32(1), i32(0))
  },
}
