// What only a process of its own can show: loading, devices, threads, and how it ends.

const test = require('ava')
const { cudaStatus } = require('../index.js')
const { devices, onCuda } = require('./helpers/machine.js')
const { root, run, runsClean } = require('./helpers/child.js')

const print = (expression) => `console.log(JSON.stringify(${expression}))`

test('require loads no CUDA library, and neither does a gather on the CPU', async (t) => {
  const libraries =
    'process.report.getReport().sharedObjects.filter((p) => /cugather|cuda|nvrtc/.test(p))'
  const stdout = await runsClean(
    t,
    `const loaded = ${libraries}
     await cudaGather(f32(1), i32(0), { device: 'cpu' })
     ${print(`[loaded, ${libraries}]`)}`,
  )
  const [afterRequire, afterGather] = JSON.parse(stdout)
  const addon = (path) => /cugather[^/]*\.node$/.test(path)
  t.true(afterRequire.some(addon), 'the report names the addon itself')
  t.deepEqual(
    afterRequire.filter((path) => /lib(nv)?cuda|nvrtc/.test(path)),
    [],
  )
  t.deepEqual(
    afterGather.filter((path) => /lib(nv)?cuda|nvrtc/.test(path)),
    [],
  )
})

test('without a usable device the CPU answers, and the reason is told', async (t) => {
  // With a driver, no device is shown to it; without one, its library is missing.
  const env = { CUDA_VISIBLE_DEVICES: '-1', CUGATHER_DEVICE: '' }
  const stdout = await runsClean(
    t,
    `const result = await cudaGather(f32(10, 20, 30), i32(2, 0, -1))
     const refused = []
     for (let round = 0; round < 2; round++) {
       await cudaGather(f32(1), i32(0), { device: 'cuda' }).catch((error) => refused.push(error))
     }
     const { usable, reason, devices } = await cudaStatus()
     ${print(`{
       result: [...result],
       refused: refused.map(({ code, message }) => ({ code, message })),
       usable, reason, devices,
     }`)}`,
    { env },
  )
  const { result, refused, usable, reason, devices } = JSON.parse(stdout)
  t.deepEqual(result, [30, 10, 30])
  t.false(usable)
  t.deepEqual(devices, [])
  const { cudaVersion } = await cudaStatus()
  t.regex(
    reason,
    cudaVersion
      ? /CUDA_ERROR_NO_DEVICE \(error 100\)/
      : /library could not be loaded \(libcuda\.so\.1: /,
  )
  const expected = { code: 'ERR_CUDA_UNAVAILABLE', message: `CUDA is not usable: ${reason}` }
  t.deepEqual(refused, [expected, expected])
})

test('what is patched after require does not run in the middle of a call', async (t) => {
  const stdout = await runsClean(
    t,
    `const source = new Float32Array(1 << 18).fill(3)
     const { apply } = Reflect
     let patched = 0
     Reflect.apply = (...args) => {
       patched++
       if (source.length) structuredClone(source.buffer, { transfer: [source.buffer] })
       gc()
       return apply(...args)
     }
     const iterator = Array.prototype[Symbol.iterator]
     Array.prototype[Symbol.iterator] = undefined
     const gathering = cudaGather(source, new Int32Array(2))
     Array.prototype[Symbol.iterator] = iterator
     const result = await gathering
     ${print('[result[0], patched]')}`,
    { args: ['--expose-gc'] },
  )
  t.deepEqual(JSON.parse(stdout), [3, 0])
})

test('a constructor of the caller that moves the source away is found out', async (t) => {
  const stdout = await runsClean(
    t,
    `const Original = globalThis.Float32Array
     delete require.cache[require.resolve('${root}')]
     let source
     globalThis.Float32Array = class extends Original {
       constructor(...args) {
         super(...args)
         if (source) structuredClone(source.buffer, { transfer: [source.buffer] })
         gc()
       }
     }
     const { cudaGather: gather } = require('${root}')
     source = new Original(1 << 18)
     const error = await gather(source, new Int32Array(1)).catch((e) => e)
     ${print('[error.code, error.message]')}`,
    { args: ['--expose-gc'] },
  )
  const [code, message] = JSON.parse(stdout)
  t.is(code, 'ERR_INVALID_ARG_TYPE')
  t.regex(message, /for source but received a detached Float32Array/)
})

test('an error has its own fields, whatever Object.prototype holds', async (t) => {
  const stdout = await runsClean(
    t,
    `const hostile = { set() { throw new Error('set') }, get: () => 77, configurable: true }
     const names = ['code', 'position', 'index', 'length', 'fields', 'message', 'errorClass']
     for (const name of names) Object.defineProperty(Object.prototype, name, hostile)
     const error = await cudaGather(f32(1), i32(9)).catch((e) => e)
     const own = (name) => Object.getOwnPropertyDescriptor(error, name)?.value
     const found = [own('code'), own('position'), own('index'), own('message')]
     for (const name of names) delete Object.prototype[name]
     ${print('found')}`,
  )
  t.deepEqual(JSON.parse(stdout), [
    'ERR_OUT_OF_RANGE',
    0,
    9,
    'index 9 at position 0 is out of bounds for axis 0 with size 1',
  ])
})

test('CUGATHER_DEVICE chooses, and a wrong one is named', async (t) => {
  const attempt = `await cudaGather(f32(1), i32(0)).then(() => 'gathered', (e) => e.code + ' ' + e.message)`
  const outcome = async (CUGATHER_DEVICE) =>
    JSON.parse(await runsClean(t, print(attempt), { env: { CUGATHER_DEVICE } }))
  t.is(await outcome('cpu'), 'gathered')
  t.is(await outcome('auto'), 'gathered')
  t.is(await outcome(''), 'gathered')
  t.regex(await outcome('cuda:99'), /^ERR_CUDA_UNAVAILABLE /)
  // It counts for calls that name no device.
  const named = `await cudaGather(f32(1), i32(0), { device: 'cpu' }).then(String)`
  t.is(await runsClean(t, print(named), { env: { CUGATHER_DEVICE: 'GPU' } }), '"1"\n')
  const { usable } = await cudaStatus()
  t.regex(await outcome('cuda'), usable ? /^gathered$/ : /^ERR_CUDA_UNAVAILABLE /)
  t.regex(
    await outcome('GPU'),
    /^ERR_INVALID_ARG_VALUE Expected .* for the environment variable CUGATHER_DEVICE but received string 'GPU'$/,
  )
})

if (onCuda) {
  test('cudaStatus describes the device', async (t) => {
    const status = await cudaStatus()
    t.true(status.usable)
    t.is(status.reason, null)
    t.regex(status.cudaVersion, /^\d+\.\d+$/)
    const [first] = status.devices
    t.is(first.device, 'cuda:0')
    t.regex(first.computeCapability, /^\d+\.\d$/)
    t.true(first.name.length > 0)
    t.true(first.memory.free > 0 && first.memory.free <= first.memory.total)
  })
}

for (const device of devices) {
  const env = { CUGATHER_DEVICE: device }

  test(`the first calls may come from eight workers at once [${device}]`, async (t) => {
    const stdout = await runsClean(
      t,
      `const { Worker } = require('node:worker_threads')
       const work = \`
         const { cudaGather } = require(\${JSON.stringify(${JSON.stringify(require.resolve('../index.js'))})})
         cudaGather(new Float32Array([1, 2, 3]), new Int32Array([2, 0])).then((result) =>
           require('node:worker_threads').parentPort.postMessage(result, [result.buffer]))
       \`
       const first = (worker) => new Promise((resolve, reject) =>
         worker.once('message', (result) => resolve([...result])).once('error', reject))
       const workers = Array.from({ length: 8 }, () => new Worker(work, { eval: true }))
       ${print('await Promise.all(workers.map(first))')}`,
      { env },
    )
    t.deepEqual(JSON.parse(stdout), Array(8).fill([3, 1]))
  })

  test(`a process ends as it is told to, after a gather and during one [${device}]`, async (t) => {
    const during = `const big = new Float32Array(1 << 22), index = new Int32Array(1 << 22)
      for (let i = 0; i < 8; i++) cudaGather(big, index)`
    await runsClean(t, `await cudaGather(f32(1), i32(0))`, { env })
    await runsClean(t, `await cudaGather(f32(1), i32(0)); process.exit(7)`, { env, code: 7 })
    await runsClean(t, `${during}; process.exit(7)`, { env, code: 7 })
    await runsClean(t, `${during}; setTimeout(() => process.exit(7), 5)`, { env, code: 7 })
    await runsClean(t, during, { env })
  })

  test(`arrays that are abandoned are collected [${device}]`, async (t) => {
    // 16 GiB in all, and nobody calls the garbage collector.
    const stdout = await runsClean(
      t,
      `const { DeviceArray } = require('${root}')
       const source = new Float32Array(1 << 20)
       let most = 0
       for (let i = 0; i < 4000; i++) {
         await DeviceArray.from(source)
         most = Math.max(most, process.memoryUsage.rss())
       }
       const { devices } = await cudaStatus()
       const held = devices[0]?.memory.total - devices[0]?.memory.free || 0
       ${print('[most / 2 ** 20, held / 2 ** 20]')}`,
      { env },
    )
    const [mostMib, heldMib] = JSON.parse(stdout)
    t.true(mostMib < 2000, `${mostMib} MiB at one time`)
    // Of the device's memory others hold some too.
    t.true(heldMib < 20_000, `${heldMib} MiB of the device at the end`)
  })

  test(`an array that only a pending gather reaches lives until it is done [${device}]`, async (t) => {
    const stdout = await runsClean(
      t,
      `const { DeviceArray } = require('${root}')
       const begin = async () =>
         (await DeviceArray.from(new Float32Array(1 << 20).fill(5))).gather(new Int32Array(1 << 20))
       const results = []
       for (let i = 0; i < 50; i++) {
         const gathering = begin()
         gc()
         await null
         gc()
         results.push(gathering.then((result) => result.every((value) => value === 5)))
       }
       ${print('(await Promise.all(results)).every(Boolean)')}`,
      { env, args: ['--expose-gc'] },
    )
    t.is(JSON.parse(stdout), true)
  })

  test(`memory does not grow over many calls, failed ones too [${device}]`, async (t) => {
    const stdout = await runsClean(
      t,
      `const source = new Float32Array(1 << 19), index = new Int32Array(1 << 19)
       const bad = new Int32Array(1 << 19).fill(-1 << 30)
       const round = async () => {
         await Promise.allSettled([cudaGather(source, index), cudaGather(source, bad),
           cudaGather(source, 'no'), cudaGather(f32(1), i32(0))])
         gc()
       }
       for (let i = 0; i < 50; i++) await round()
       const before = process.memoryUsage.rss()
       for (let i = 0; i < 300; i++) await round()
       ${print('(process.memoryUsage.rss() - before) / 2 ** 20')}`,
      { env, args: ['--expose-gc'] },
    )
    // 300 rounds that kept one 2 MiB array each would be 600 MiB.
    t.true(JSON.parse(stdout) < 60, `${stdout} MiB more after 300 rounds`)
  })
}

test('a call at the end of the stack', async (t) => {
  const { code, signal, stdout } = await run(
    `const { DeviceArray, pinned } = require(${JSON.stringify(root)})
     const table = await DeviceArray.from(f32(1, 2))
     const calls = [() => cudaGather(f32(1), i32(0)), () => table.toHost(), () => pinned(Float32Array, 1),
       () => cudaGather(f32(1), i32(0), { signal: new AbortController().signal })]
     for (const call of calls) {
       const deep = (depth) => (depth === 0 ? call().catch(() => {}) : deep(depth - 1))
       // Some depths end within the call, whatever the size of a frame.
       for (let depth = 4000; depth < 16000; depth += 3) {
         try { deep(depth) } catch {}
       }
     }
     console.log(String(await cudaGather(f32(1, 2), i32(1))))`,
  )
  // Node itself says on stderr which promises it had no stack to tell of.
  t.deepEqual({ code, signal, stdout }, { code: 0, signal: null, stdout: '2\n' })
})

test('errors are what they are, whatever is done to prototypes', async (t) => {
  const stdout = await runsClean(
    t,
    `const { pinned } = require(${JSON.stringify(root)})
     const codes = []
     const ends = async (promise) => codes.push(await promise.catch(({ code }) => code))
     const tooLarge = () => pinned(Float32Array, 2 ** 53 - 1)
     const outside = () => cudaGather(f32(1), i32(9))
     const aborted = () => cudaGather(f32(1), i32(0), { signal: AbortSignal.abort() })
     Object.prototype.cause = {}
     await ends(tooLarge())
     delete Object.prototype.cause
     const { toString } = Error.prototype
     Error.prototype.toString = function () { throw this }
     await ends(tooLarge())
     Error.prototype.toString = toString
     Object.prototype.get = () => {}
     await ends(outside())
     await ends(aborted())
     delete Object.prototype.get
     console.log(codes.join())`,
  )
  t.is(stdout, 'ERR_OUT_OF_RANGE,ERR_OUT_OF_RANGE,ERR_OUT_OF_RANGE,ABORT_ERR\n')
})

test('a copy of the module goes on when another is loaded', async (t) => {
  const stdout = await runsClean(
    t,
    `const { DeviceArray } = require(${JSON.stringify(root)})
     for (const file of Object.keys(require.cache)) delete require.cache[file]
     require(${JSON.stringify(root)})
     const table = await DeviceArray.from(f32(1, 2))
     const kept = await table.gather(i32(1), { result: 'device' })
     console.log(table instanceof DeviceArray, String(await kept.toHost()))`,
  )
  t.is(stdout, 'true 2\n')
})
