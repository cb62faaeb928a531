// npm run test:soak [-- --device cpu|cuda] [--quick]: what shows only after many rounds. Workers that
// are ended with gathers in flight, processes that end in every way, and a million small calls. Ends
// with 1 at the first thing that is not clean; takes at most ten minutes.

const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { setTimeout: sleep } = require('node:timers/promises')
const { Worker } = require('node:worker_threads')
const assert = require('node:assert/strict')
const { availableParallelism } = require('node:os')
const { cudaGather, DeviceArray } = require('../index.js')
const { root, run } = require('./helpers/child.js')

const { values } = parseArgs({
  options: {
    device: { type: 'string', default: process.env.CUGATHER_DEVICE || 'cpu' },
    quick: { type: 'boolean', default: false },
  },
})
const { device, quick } = values
const [ROUNDS, EXITS, CALLS] = quick ? [5, 6, 20_000] : [50, 200, 1_000_000]

/** Bytes that the process holds, once what can be collected is. */
async function held() {
  for (let k = 0; k < 3; k++) {
    globalThis.gc()
    await sleep(20)
  }
  return process.memoryUsage().rss
}

const worker = `
  const { workerData, parentPort } = require('node:worker_threads')
  const { cudaGather, DeviceArray } = require(workerData.root)
  const main = async () => {
    const table = await DeviceArray.from(new Float32Array(1 << 20), { device: workerData.device })
    const index = new Int32Array(1 << 18)
    for (let k = 0; k < 20; k++) table.gather(index)
    parentPort.postMessage('begun')
  }
  main()`

/** 20 gathers in a worker, which is ended 0 to 5 ms after they have begun. */
async function terminated(round) {
  const started = new Worker(worker, { eval: true, workerData: { root, device } })
  const exit = once(started, 'exit')
  await once(started, 'message')
  await sleep(round % 6)
  await started.terminate()
  await exit
}

const ways = {
  'process.exit(7)': { end: 'process.exit(7)', code: 7 },
  'an uncaught throw': { end: "setImmediate(() => { throw new Error('on purpose') })", code: 1 },
  'its natural end': { end: '', code: 0 },
}

/** A process that ends in one way with arrays alive and gathers pending. */
async function exited(way) {
  const { end, code } = ways[way]
  const outcome = await run(`
    const { DeviceArray } = require(${JSON.stringify(root)})
    const table = await DeviceArray.from(new Float32Array(1 << 16), { device: '${device}' })
    globalThis.kept = await table.gather(i32(1), { result: 'device' })
    for (let k = 0; k < 8; k++) table.gather(new Int32Array(1 << 18));
    ${end}`)
  assert.equal(outcome.signal, null, outcome.stderr)
  assert.equal(outcome.code, code, outcome.stderr)
  // Of the error that was thrown Node itself prints a few lines.
  const printed = outcome.stderr.replace(/[\s\S]*Error: on purpose[\s\S]*Node\.js v.*\s*/, '')
  assert.equal(printed, '')
}

/** Runs `task(k)` for every k below `count`, some at a time. */
async function inParallel(count, atOnce, task) {
  let next = 0
  const work = async () => {
    while (next < count) await task(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, work))
}

async function smallCalls() {
  const table = await DeviceArray.from(new Float32Array(1 << 16).fill(3), { device })
  const index = new Int32Array(64)
  const source = new Float32Array(100).fill(5)
  const call = async (k) => {
    const { signal } = new AbortController()
    const result =
      k % 4 === 0 ? await cudaGather(source, index, { device, signal }) : await table.gather(index)
    assert.equal(result[63], k % 4 === 0 ? 5 : 3)
    if (k % 100 === 0) {
      const bad = table.gather(Int32Array.of(1 << 20))
      await assert.rejects(bad, { code: 'ERR_OUT_OF_RANGE' })
    }
  }
  await inParallel(CALLS / 10, 64, call)
  const before = await held()
  await inParallel(CALLS, 64, call)
  const grown = (await held()) - before
  // A leak of one reference a call would be some 100 MB.
  const most = 24 << 20
  console.log(`${CALLS} small calls: ${(grown / 2 ** 20).toFixed(1)} MiB more than after the first`)
  assert.ok(grown < most, `grown by ${grown} bytes`)
  table.dispose()
}

async function main() {
  assert.ok(globalThis.gc, 'node --expose-gc')
  const begun = performance.now()
  const say = (what) => {
    const seconds = ((performance.now() - begun) / 1000).toFixed(0)
    console.log(`${what} (${seconds} s so far)`)
  }
  console.log(`on ${device}, Node ${process.versions.node}`)
  for (let round = 0; round < ROUNDS; round++) await terminated(round)
  say(`${ROUNDS} workers ended with 20 gathers in flight`)
  for (const way of Object.keys(ways)) {
    await inParallel(EXITS, Math.min(4, availableParallelism()), () => exited(way))
    say(`${EXITS} processes ended by ${way}, with arrays and gathers`)
  }
  await smallCalls()
  const [value] = await cudaGather(Float32Array.of(1, 2), Int32Array.of(1), { device })
  assert.equal(value, 2)
  say('all clean')
}

main()
