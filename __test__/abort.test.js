// The option `signal`.

const test = require('ava')
const diagnosticsChannel = require('node:diagnostics_channel')
const { getEventListeners } = require('node:events')
const { setTimeout: sleep } = require('node:timers/promises')
const vm = require('node:vm')
const { cudaGather, DeviceArray, explain } = require('../index.js')
const { f32, i32 } = require('./helpers/arrays.js')
const { runsClean } = require('./helpers/child.js')
const { onEachDevice } = require('./helpers/devices.js')

const ABORTED = { name: 'AbortError', code: 'ABORT_ERR', message: 'The operation was aborted' }

/** As Node's fs rejects: an AbortError whose cause is the reason. */
async function isAborted(t, promise, reason) {
  const error = await t.throwsAsync(promise, ABORTED)
  t.is(error.cause, reason)
  t.is(Object.getPrototypeOf(error), Error.prototype)
}

onEachDevice('a signal that is aborted already: nothing is done', async (t, gather) => {
  const reason = new Error('not wanted')
  const out = f32(9, 9)
  const options = { signal: AbortSignal.abort(reason), out }
  await isAborted(t, gather(f32(1, 2), i32(0, 1), options), reason)
  t.deepEqual(out, f32(9, 9))
  t.deepEqual(await gather(f32(1, 2), i32(1), { signal: undefined }), f32(2))
})

onEachDevice('those that wait reject at once, those that run soon', async (t, gather) => {
  // Enough to keep every runner busy for some chunks, with others waiting.
  const source = new Float32Array(1 << 20)
  const index = new Int32Array(12 << 20)
  const controller = new AbortController()
  const { signal } = controller
  const reason = { any: 'value' }
  const ran = []
  const waits = []
  const listener = ({ error, waitMs, runMs }) => {
    if (error?.cause !== reason) return
    ran.push(runMs > 0)
    waits.push(waitMs)
  }
  diagnosticsChannel.subscribe('cugather:gather', listener)
  const calls = Array.from({ length: 12 }, () => gather(source, index, { signal }))
  const outcomes = Promise.allSettled(calls)
  controller.abort(reason)
  await new Promise((resolve) => setImmediate(resolve))
  const atOnce = ran.length
  await outcomes
  diagnosticsChannel.unsubscribe('cugather:gather', listener)
  for (const call of calls) await isAborted(t, call, reason)
  // How many had waited is the machine's; that those took no time is not.
  t.true(ran.includes(false), 'some had waited')
  t.true(
    waits.every((ms) => ms > 0),
    `${waits}`,
  )
  t.false(ran.slice(atOnce).includes(false), 'all that had waited rejected at once')
  // Nothing is lost.
  t.deepEqual(await gather(f32(1, 2), i32(1, 0)), f32(2, 1))
})

onEachDevice('a result on the device that comes too late is let go', async (t, gather) => {
  const controller = new AbortController()
  const call = gather(f32(1), i32(0), { signal: controller.signal, result: 'device' })
  controller.abort()
  await isAborted(t, call, controller.signal.reason)
})

onEachDevice('one signal serves many calls, and keeps nothing of them', async (t, gather) => {
  const controller = new AbortController()
  const { signal } = controller
  let called = 0
  signal.onabort = () => called++
  signal.addEventListener('abort', () => called++)
  const before = getEventListeners(signal, 'abort').length
  for (let round = 0; round < 100; round++) {
    await Promise.all(Array.from({ length: 100 }, () => gather(f32(1), i32(0), { signal })))
  }
  t.is(getEventListeners(signal, 'abort').length, before)
  const bad = gather(f32(1), i32(5), { signal })
  await t.throwsAsync(bad, { code: 'ERR_OUT_OF_RANGE' })
  t.is(getEventListeners(signal, 'abort').length, before)
  const call = gather(f32(1), i32(0), { signal })
  controller.abort('why')
  await isAborted(t, call, 'why')
  t.is(called, 2)
})

test('no warning of many listeners, and no growth', async (t) => {
  await runsClean(
    t,
    `
    const { signal } = new AbortController()
    const round = () => Promise.all(
      Array.from({ length: 1000 }, () => cudaGather(f32(1), i32(0), { signal, device: 'cpu' })))
    for (let k = 0; k < 10; k++) await round()
    gc()
    const before = process.memoryUsage().heapUsed
    for (let k = 0; k < 30; k++) await round()
    gc()
    const grown = process.memoryUsage().heapUsed - before
    if (grown > 1 << 20) throw new Error(grown + ' bytes more')`,
    { args: ['--expose-gc', '--trace-warnings'] },
  )
})

test('AbortSignal.timeout and AbortSignal.any', async (t) => {
  const source = new Float32Array(1 << 20)
  const index = new Int32Array(8 << 20)
  const timeout = AbortSignal.timeout(1)
  const many = Array.from({ length: 20 }, () => cudaGather(source, index, { signal: timeout }))
  const outcomes = await Promise.allSettled(many)
  const aborted = outcomes.filter(({ status }) => status === 'rejected')
  t.true(aborted.length > 10, `${aborted.length}`)
  for (const { reason } of aborted) t.like(reason, ABORTED)
  t.is(aborted[0].reason.cause.name, 'TimeoutError')

  const controller = new AbortController()
  const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(60_000)])
  const call = cudaGather(source, index, { signal })
  controller.abort('any')
  await isAborted(t, call, 'any')
})

test("other people's listeners and events don't come between", async (t) => {
  const index = new Int32Array(8 << 20)
  let areDone = false
  const busy = Promise.all(Array.from({ length: 4 }, () => cudaGather(f32(1), index))).then(() => {
    areDone = true
  })
  const controller = new AbortController()
  const { signal } = controller
  signal.addEventListener('abort', (event) => event.stopImmediatePropagation())
  let isSettled = false
  const call = cudaGather(f32(1), index, { signal }).finally(() => {
    isSettled = true
  })
  // Of that name, but nobody has aborted.
  signal.dispatchEvent(new Event('abort'))
  const other = cudaGather(f32(1), index, { signal })
  await new Promise((resolve) => setImmediate(resolve))
  t.false(isSettled)
  controller.abort(5)
  await isAborted(t, call, 5)
  await isAborted(t, other, 5)
  t.false(areDone, 'those that wait reject at once')
  await busy
  t.is(getEventListeners(signal, 'abort').length, 1)
})

test('explain reads the signal too', async (t) => {
  await isAborted(t, explain(f32(1), i32(0), { signal: AbortSignal.abort(3) }), 3)
  await t.throwsAsync(explain(f32(1), i32(0), { signal: true }), { code: 'ERR_INVALID_ARG_TYPE' })
})

test('what is no AbortSignal', async (t) => {
  const forged = Object.create(AbortSignal.prototype)
  const ofAnotherRealm = vm.runInNewContext('({ aborted: true })')
  for (const signal of [
    null,
    1,
    'abort',
    {},
    { aborted: false },
    new EventTarget(),
    forged,
    ofAnotherRealm,
  ]) {
    await t.throwsAsync(cudaGather(f32(1), i32(0), { signal }), {
      instanceOf: TypeError,
      code: 'ERR_INVALID_ARG_TYPE',
      message: /^Expected an AbortSignal for signal but received /,
    })
  }
})

onEachDevice('out of a call that was aborted', async (t, gather) => {
  const source = Float32Array.from({ length: 1000 }, (_, i) => i)
  const index = Int32Array.from({ length: 4 << 20 }, (_, i) => i % 1000)
  const out = new Float32Array(index.length).fill(-1)
  const controller = new AbortController()
  const call = gather(source, index, { signal: controller.signal, out, mode: 'wrap' })
  await sleep(5)
  controller.abort()
  const [{ reason }] = await Promise.allSettled([call])
  t.is(reason.code, 'ABORT_ERR')
  // Nothing writes there once the promise is settled.
  const then = out.slice()
  await sleep(50)
  t.deepEqual(out, then)
  t.true(out.every((value, i) => value === -1 || value === i % 1000))
})

test('a DeviceArray passes the signal on', async (t) => {
  const table = await DeviceArray.from(f32(1, 2))
  await isAborted(t, table.gather(i32(0), { signal: AbortSignal.abort(3) }), 3)
})
