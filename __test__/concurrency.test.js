// Many at once: who waits for whom, what others feel of it, and what becomes of inputs meanwhile.

const test = require('ava')
const diagnosticsChannel = require('node:diagnostics_channel')
const { cudaGather, DeviceArray } = require('../index.js')
const { f32, i32 } = require('./helpers/arrays.js')
const { root, runsClean } = require('./helpers/child.js')
const { onEachDevice } = require('./helpers/devices.js')

onEachDevice('first come, first served', async (t, gather) => {
  const order = []
  const index = new Int32Array(3 << 20)
  const call = (k) => gather(f32(1), index).then(() => order.push(k))
  await Promise.all(Array.from({ length: 12 }, (_, k) => call(k)))
  // Two run at a time, and one that is slow is overtaken by some, but not by all.
  order.forEach((k, place) => {
    t.true(Math.abs(k - place) <= 5, `${order}`)
  })
})

onEachDevice('a small gather passes large ones', async (t, gather, device) => {
  const source = new Float32Array(64 << 20)
  let large = 0
  const uploads = Array.from({ length: 6 }, () =>
    DeviceArray.from(source, { device }).then((array) => {
      large++
      array.dispose()
    }),
  )
  await new Promise((resolve) => setImmediate(resolve))
  t.deepEqual(await gather(f32(1, 2), i32(1)), f32(2))
  t.true(large < 5, `${large} of 6 had been waited for`)
  await Promise.all(uploads)
})

for (const size of ['1', '2', '4', undefined]) {
  test(`libuv's pool has a thread for others, of ${size ?? 'four'}`, async (t) => {
    const env = size === undefined ? {} : { UV_THREADPOOL_SIZE: size }
    const stdout = await runsClean(
      t,
      `
      const { stat } = require('node:fs/promises')
      const index = new Int32Array(4 << 20)
      let settled = 0
      const calls = Array.from({ length: 24 }, () => cudaGather(f32(1), index).then(() => settled++))
      await new Promise((resolve) => setImmediate(resolve))
      await stat('.')
      console.log(settled < 24)
      await Promise.all(calls)`,
      { env },
    )
    t.is(stdout.trim(), 'true')
  })
}

onEachDevice('a large input that is moved away meanwhile rejects', async (t, gather) => {
  const before = Array.from({ length: 8 }, () => gather(f32(1), new Int32Array(3 << 20)))
  const index = new Int32Array(1 << 20)
  const out = new Float32Array(1 << 20)
  const calls = [gather(f32(1), index), gather(f32(1), new Int32Array(1 << 20), { out })]
  // Its memory lives on, so that this is no test of what happens to memory that does not.
  const moved = [index, out].map((array) => structuredClone(array, { transfer: [array.buffer] }))
  const expected = { instanceOf: TypeError, code: 'ERR_INVALID_ARG_TYPE' }
  await t.throwsAsync(calls[0], { ...expected, message: /for index but received a detached Int32/ })
  await t.throwsAsync(calls[1], { ...expected, message: /for out but received a detached Float32/ })
  await Promise.all(before)
  t.is(moved.length, 2)
})

onEachDevice('shared memory and WebAssembly memory are read as they are', async (t, gather) => {
  const shared = new Float32Array(new SharedArrayBuffer(4 * 400_000)).fill(3)
  const memory = new WebAssembly.Memory({ initial: 32 })
  const index = new Int32Array(memory.buffer, 16, 400_000)
  index.fill(7)
  const result = await gather(shared, index)
  t.true(result.every((value) => value === 3))
  t.is(result.buffer.constructor, ArrayBuffer)
})

const channel = 'cugather:gather'

test.serial('who subscribes is told of each call', async (t) => {
  const told = []
  const subscriber = (message) => told.push(message)
  diagnosticsChannel.subscribe(channel, subscriber)
  try {
    await cudaGather(f32(1, 2), i32(1), { device: 'cpu' })
    const error = await t.throwsAsync(cudaGather(f32(1), i32(3), { device: 'cpu' }))
    await t.throwsAsync(cudaGather(1, 2))
    await t.throwsAsync(cudaGather(f32(1), i32(0), { signal: AbortSignal.abort() }))
    const [good, bad, wrong, aborted] = told
    t.like(good, { route: 'cpu', device: 'cpu', bytesToDevice: 0, bytesFromDevice: 0 })
    t.true(good.waitMs >= 0 && good.runMs >= 0 && !('error' in good))
    t.is(bad.error, error)
    t.is(bad.route, 'cpu')
    t.is(wrong.error.code, 'ERR_INVALID_ARG_TYPE')
    t.is(aborted.error.code, 'ABORT_ERR')
  } finally {
    diagnosticsChannel.unsubscribe(channel, subscriber)
  }
  await cudaGather(f32(1), i32(0))
  t.is(told.length, 4)
})

for (const device of ['cpu', 'cuda']) {
  const env = { CUGATHER_DEVICE: device === 'cuda' ? process.env.CUGATHER_DEVICE : 'cpu' }
  if (device === 'cuda' && !/^cuda/.test(process.env.CUGATHER_DEVICE ?? '')) continue

  test(`workers that end with gathers in flight [${device}]`, async (t) => {
    await runsClean(
      t,
      `
      const { Worker } = require('node:worker_threads')
      const { once } = require('node:events')
      const work = (end) => \`
        const { cudaGather, DeviceArray } = require(${JSON.stringify(root)})
        const { parentPort } = require('node:worker_threads')
        const main = async () => {
          const table = await DeviceArray.from(new Float32Array(1 << 20))
          const index = new Int32Array(1 << 20)
          for (let k = 0; k < 20; k++) table.gather(index, k % 2 ? {} : { result: 'device' })
          parentPort.postMessage('begun')
          \${end}
        }
        main()\`
      const start = async (end) => {
        const worker = new Worker(work(end), { eval: true })
        const exit = once(worker, 'exit')
        await once(worker, 'message')
        return { worker, exit }
      }
      for (let round = 0; round < 6; round++) {
        const { worker, exit } = await start('')
        await new Promise((resolve) => setTimeout(resolve, round))
        await worker.terminate()
        await exit
      }
      // One that ends by itself, with process.exit, and one whose loop runs empty.
      for (const [end, code] of [['process.exit(5)', 5], ['', 0]]) {
        const { exit } = await start(end)
        const [got] = await exit
        if (got !== code) throw new Error('exit code ' + got)
      }
      // The main thread goes on beside workers that come and go.
      const running = Array.from({ length: 3 }, () => start(''))
      const calls = Array.from({ length: 50 }, () => cudaGather(f32(1, 2), i32(1)))
      for (const [value] of await Promise.all(calls)) if (value !== 2) throw new Error('wrong')
      await Promise.all((await Promise.all(running)).map(({ worker }) => worker.terminate()))
      if ((await cudaGather(f32(1, 2), i32(1)))[0] !== 2) throw new Error('wrong')`,
      { env },
    )
  })

  test(`a process ends as it is asked to, arrays and gathers or not [${device}]`, async (t) => {
    const begin = `
      const { DeviceArray } = require(${JSON.stringify(root)})
      const table = await DeviceArray.from(new Float32Array(1 << 22))
      const calls = Array.from({ length: 20 }, () => table.gather(new Int32Array(1 << 20)))
      globalThis.kept = await table.gather(i32(1, 2), { result: 'device' });`
    for (let round = 0; round < 3; round++) {
      await runsClean(t, `${begin} process.exit(7)`, { env, code: 7 })
      await runsClean(t, `${begin}`, { env })
      await runsClean(t, `process.exitCode = 3; ${begin}`, { env, code: 3 })
    }
  })
}
