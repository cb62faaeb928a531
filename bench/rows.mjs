// Every figure that cugather has to reach: what is measured, beside whom, and how long it may take of
// their time. A row is a function that resolves to { cugather, peers, comparisons }, or to
// { reason } where this machine can't measure it.

import { expectedOf, randomIndex, sameBytes } from './data.mjs'
import { delayDuring, delayDuringArrays, delayDuringReads, readFileDuring } from './event-loop.mjs'
import { summary, timesOf } from './measure.mjs'
import { article, emptyTask, kernels } from './peers.mjs'
import { compare } from './report.mjs'

const NO_CUDA = { reason: 'there is no usable CUDA device' }

/** Arrays of one size, with the result that is right and the files of them. */
function sized(bench, length) {
  const { source, files } = bench
  bench.sizes ??= new Map()
  if (!bench.sizes.has(length)) {
    const index = randomIndex(length, source.length, length)
    const expected = expectedOf(source, index)
    const paths = () => ({
      source: files.of('source.f32', source),
      index: files.of(`index-${length}.i32`, index),
      expected: files.of(`expected-${length}.u32`, expected),
    })
    bench.sizes.set(length, { index, expected, paths })
  }
  return bench.sizes.get(length)
}

const ours = async (bench, work, { rounds = bench.rounds, expected, before } = {}) => {
  const check = (result) => {
    if (expected && !sameBytes(result, expected)) throw new Error('a result of cugather is wrong')
  }
  return summary(await timesOf(work, { rounds, before, check }))
}

const theirs = (bench, peer, work, length, rounds = bench.rounds) =>
  bench.python.measure(peer, work, { ...sized(bench, length).paths(), rounds, warmup: 3 })

function javascriptLoop({ source }, index) {
  return () => {
    const out = new Float32Array(index.length)
    for (let i = 0; i < index.length; i++) out[i] = source[index[i]]
    return out
  }
}

/** A loop moves numbers, not bits, so that only the numbers can be compared. */
const loopTime = async (bench, index) =>
  summary(await timesOf(javascriptLoop(bench, index), { rounds: bench.rounds }))

async function table(bench) {
  bench.table ??= await bench.cugather.DeviceArray.from(bench.source, { device: bench.device })
  return bench.table
}

async function hostSource(bench) {
  if (!bench.cuda) return NO_CUDA
  const { cudaGather } = bench.cugather
  const { index, expected, paths } = sized(bench, bench.indexLength)
  const { device, source } = bench
  const cugather = await ours(bench, () => cudaGather(source, index, { device }), { expected })
  const files = paths()
  const steps = article(files.source, files.index, files.expected, bench.rounds)
  const peers = {
    pytorch: await theirs(bench, 'pytorch', 'host', bench.indexLength),
    cupy: await theirs(bench, 'cupy', 'host', bench.indexLength),
    article: steps.reset ?? steps,
    'article, no reset': steps.kept ?? steps,
    'JavaScript loop': await loopTime(bench, index),
  }
  const limits = { pytorch: 0.3 }
  return { cugather, peers, comparisons: against(cugather, peers, limits) }
}

const against = (cugather, peers, limits) =>
  Object.keys(peers).map((name) => compare(name, cugather.ms, peers[name].ms, limits[name]))

async function pinnedSource(bench) {
  if (!bench.cuda) return NO_CUDA
  const { cudaGather, explain, pinned } = bench.cugather
  const { index, expected } = sized(bench, bench.indexLength)
  const source = await pinned(Float32Array, bench.source.length)
  source.set(bench.source)
  const { device } = bench
  const { route } = await explain(source, index, { device })
  const cugather = await ours(bench, () => cudaGather(source, index, { device }), { expected })
  const peers = { pytorch: await theirs(bench, 'pytorch', 'pinned', bench.indexLength) }
  return { route, cugather, peers, comparisons: against(cugather, peers, { pytorch: 0.25 }) }
}

async function residentKept(bench) {
  if (!bench.cuda) return NO_CUDA
  const { index, expected } = sized(bench, bench.indexLength)
  const [from, kept] = [await table(bench), []]
  const work = async () => kept[kept.push(await from.gather(index)) - 1]
  const cugather = await ours(bench, work, { expected })
  const peers = { pytorch: await theirs(bench, 'pytorch', 'kept', bench.indexLength) }
  return { cugather, peers, comparisons: against(cugather, peers, { pytorch: 0.5 }) }
}

async function residentDropped(bench) {
  if (!bench.cuda) return NO_CUDA
  const { index, expected } = sized(bench, bench.indexLength)
  const from = await table(bench)
  const rounds = 3 * bench.rounds
  const cugather = await ours(bench, () => from.gather(index), { expected, rounds })
  const peers = {
    pytorch: await theirs(bench, 'pytorch', 'dropped', bench.indexLength, rounds),
    cupy: await theirs(bench, 'cupy', 'dropped', bench.indexLength, rounds),
  }
  return { cugather, peers, comparisons: against(cugather, peers, { pytorch: 0.9 }) }
}

async function residentOut(bench) {
  if (!bench.cuda) return NO_CUDA
  const { index, expected } = sized(bench, bench.indexLength)
  const [from, out] = [await table(bench), new Float32Array(bench.indexLength)]
  const rounds = 3 * bench.rounds
  const work = () => from.gather(index, { out })
  const cugather = await ours(bench, work, { expected, rounds, before: poison(out) })
  const peers = { pytorch: await theirs(bench, 'pytorch', 'out', bench.indexLength, rounds) }
  return { cugather, peers, comparisons: against(cugather, peers, { pytorch: 0.5 }) }
}

const poison = (out) => () => new Uint32Array(out.buffer).fill(0xffffffff)

async function residentPinned(bench) {
  if (!bench.cuda) return NO_CUDA
  const { pinned } = bench.cugather
  const { index, expected } = sized(bench, bench.indexLength)
  const by = await pinned(Int32Array, index.length)
  by.set(index)
  const out = await pinned(Float32Array, index.length)
  const from = await table(bench)
  const rounds = 3 * bench.rounds
  const work = () => from.gather(by, { out })
  const cugather = await ours(bench, work, { expected, rounds, before: poison(out) })
  const { up } = await bench.bus()
  // Index up and result down at once: the longer of two equal ways.
  const floor = up
    ? { ms: by.byteLength / up / 1e6 }
    : { reason: 'the bus needs PyTorch to measure' }
  const peers = { 'floor of the bus': floor }
  return { cugather, peers, comparisons: against(cugather, peers, { 'floor of the bus': 2.0 }) }
}

const SCALARS = { 1024: 0.45, 65536: 0.4, 1048576: 0.8, 134217728: 0.98 }
const ROWS = { 4: 0.08, 16: 0.1, 32: 0.15, 64: 0.25, 128: 0.45, 256: 0.85 }

/** A row for each shape, from one run of kernels.py. */
async function kernelRows(bench) {
  if (!bench.cuda) return [{ name: 'kernel alone', ...NO_CUDA }]
  const { results, reason } = kernels(bench.pythonCommand, bench.quick)
  if (!results) return [{ name: 'kernel alone', reason }]
  return results.flatMap(({ row_floats: floats, indices, equal, launched, replayed }) => {
    const isScalar = floats === 1
    const limit = isScalar ? SCALARS[indices] : ROWS[floats]
    const shape = isScalar ? `${indices}` : `rows of ${floats} floats`
    // Launched from Python one by one, as PyTorch's users do, and replayed from a graph, without that.
    return Object.entries({ '': replayed, ', with its launch': launched }).map(([how, times]) => {
      const row = { name: `kernel alone, ${shape}${how}`, device: 'cuda' }
      if (!equal) return { ...row, error: "the result differs from PyTorch's" }
      const cugather = { ms: times.cugather_us / 1000 }
      const peers = { pytorch: { ms: times.pytorch_us / 1000 } }
      return { ...row, cugather, peers, comparisons: against(cugather, peers, { pytorch: limit }) }
    })
  })
}

async function onCpu(bench) {
  const { cudaGather } = bench.cugather
  const { index, expected } = sized(bench, bench.indexLength)
  const work = () => cudaGather(bench.source, index, { device: 'cpu' })
  const cugather = await ours(bench, work, { expected })
  const native = await bench.cugather.DeviceArray.from(bench.source, { device: 'cpu' })
  const resident = await ours(bench, () => native.gather(index), { expected })
  native.dispose()
  const peers = {
    'JavaScript loop': await loopTime(bench, index),
    numpy: await theirs(bench, 'numpy', 'take', bench.indexLength),
  }
  const limits = { 'JavaScript loop': 0.33, numpy: 0.45 }
  const name = `on the CPU, ${bench.cores} cores`
  return [
    { name: `one call ${name}`, cugather, peers, comparisons: against(cugather, peers, limits) },
    // Its memory is cugather's own, by huge pages, as numpy's is.
    {
      name: `from a DeviceArray ${name}`,
      cugather: resident,
      peers,
      comparisons: against(resident, peers, {}),
    },
  ]
}

const SMALL = 64
const AT_ONCE = 64

/** So many calls, some at a time. */
async function manyCalls(calls, work) {
  let left = calls
  const one = async () => {
    while (left-- > 0) await work()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, one))
}

const smallCalls = (device) => async (bench) => {
  if (device === 'cuda' && !bench.cuda) return NO_CUDA
  const calls = bench.quick ? 2000 : 10_000
  const { index, expected } = sized(bench, SMALL)
  const from = await bench.cugather.DeviceArray.from(bench.source.subarray(0, 1 << 20), { device })
  const near = index.map((row) => row % (1 << 20))
  const right = expectedOf(bench.source, near)
  if (!sameBytes(await from.gather(near), right) || expected.length !== SMALL)
    throw new Error('a result of cugather is wrong')
  const work = () => manyCalls(calls, () => from.gather(near))
  const empty = emptyTask()
  const rounds = 7
  const [times, emptyTimes] = [[], []]
  for (let round = 0; round < rounds; round++) {
    times.push(...(await timesOf(work, { rounds: 1, warmup: round ? 0 : 2 })))
    const none = () => manyCalls(calls, empty)
    emptyTimes.push(...(await timesOf(none, { rounds: 1, warmup: round ? 0 : 2 })))
  }
  const cugather = summary(times)
  const peers = { 'empty napi task': summary(emptyTimes) }
  from.dispose()
  return { cugather, peers, comparisons: against(cugather, peers, { 'empty napi task': 2 }) }
}

/** Gathers into arrays that are used in turn, so that nothing is left to collect. */
function into(from, index, count) {
  const outs = Array.from({ length: count }, () => new Float32Array(index.length))
  let next = 0
  return () => from.gather(index, { out: outs[next++ % count] })
}

/** Delays are compared by their difference, so the limit is a time of its own. */
const delays = (device) => async (bench) => {
  if (device === 'cuda' && !bench.cuda) return NO_CUDA
  const { cudaGather, DeviceArray } = bench.cugather
  const { index } = sized(bench, bench.indexLength)
  const upload = async () => (await DeviceArray.from(bench.source, { device })).dispose()
  const from = await DeviceArray.from(bench.source, { device })
  const gather = () => from.gather(index)
  const once = () => cudaGather(bench.source, index, { device })
  const ms = bench.quick ? 400 : 2000
  const idle = await delayDuring(undefined, 0, ms)
  const measured = {
    'DeviceArray.from': await delayDuring(upload, 1, ms),
    'a host source': await delayDuring(once, 1, ms),
    '64 gathers into outs': await delayDuring(into(from, index, 64), 64, ms),
    '64 gathers': await delayDuring(gather, 64, ms),
  }
  // What as much to collect costs without us.
  const { perSecond } = measured['64 gathers']
  const file = bench.files.of(`index-${index.length}.i32`, index)
  const bytes = index.length * Float32Array.BYTES_PER_ELEMENT
  const controls = {
    'as many new arrays, untouched': await delayDuringArrays(bytes, 64, perSecond, ms),
    '64 reads of a file as large as a result': await delayDuringReads(file, 64, ms),
  }
  const peers = { '64 gathers': controls }
  const alone = await readFileDuring(bench.files.folder, undefined, 0, ms)
  const besideOuts = await readFileDuring(bench.files.folder, into(from, index, 64), 64, ms)
  const beside = await readFileDuring(bench.files.folder, gather, 64, ms)
  from.dispose()
  const rows = Object.entries(measured).map(([what, cugather]) => ({
    name: `event loop, 99th percentile, during ${what}`,
    cugather,
    peers: { 'idle + 2 ms': { ms: idle.ms + 2 }, ...peers[what] },
    comparisons: [
      compare('idle + 2 ms', cugather.ms, idle.ms + 2, 1),
      ...Object.entries(peers[what] ?? {}).map(([of, { ms }]) => compare(of, cugather.ms, ms)),
    ],
  }))
  for (const [what, took] of [
    ['64 gathers into outs', besideOuts],
    ['64 gathers', beside],
  ]) {
    rows.push({
      name: `fs.readFile beside ${what}`,
      cugather: { ms: took },
      peers: { idle: { ms: alone } },
      comparisons: [compare('idle', took, alone, 3)],
    })
  }
  return rows.map((row) => ({ ...row, device }))
}

async function creation(bench) {
  const { DeviceArray } = bench.cugather
  const work = async () =>
    (await DeviceArray.from(bench.source, { device: bench.device })).dispose()
  return { device: bench.device, cugather: await ours(bench, work) }
}

/** Times over sizes, for the chart: a line for each way and peer. */
async function sweep(bench) {
  const { cudaGather } = bench.cugather
  const most = bench.quick ? 1 << 16 : 1 << 24
  const sizes = []
  for (let size = 1 << 10; size <= most; size *= 4) sizes.push(size)
  const series = {}
  const add = (name, size, measured) => {
    if (!measured.ms) return
    series[name] ??= []
    series[name].push([size, measured.ms])
  }
  const from = bench.cuda && (await table(bench))
  const rounds = Math.max(5, bench.rounds >> 1)
  for (const size of sizes) {
    const { index, expected } = sized(bench, size)
    const measure = (name, work) =>
      ours(bench, work, { expected, rounds }).then((measured) => add(name, size, measured))
    if (from) {
      await measure('cugather, resident', () => from.gather(index))
      await measure('cugather, upload', () =>
        cudaGather(bench.source, index, { device: bench.device }),
      )
      for (const [name, peer, work] of [
        ['PyTorch, resident', 'pytorch', 'dropped'],
        ['PyTorch, host source', 'pytorch', 'host'],
        ['CuPy, resident', 'cupy', 'dropped'],
      ])
        add(name, size, await theirs(bench, peer, work, size, rounds))
      const { up } = await bench.bus()
      if (up) add('floor of the bus', size, { ms: index.byteLength / up / 1e6 })
    }
    await measure('cugather, cpu', () => cudaGather(bench.source, index, { device: 'cpu' }))
    add('JavaScript loop', size, await loopTime(bench, index))
    add('numpy', size, await theirs(bench, 'numpy', 'take', size, rounds))
    bench.sizes.delete(size)
  }
  return { series }
}

/** By the names that --rows takes; those of a list run on the device that they name. */
export const rows = {
  'host-source': ['one call, source on the host', hostSource, 'cuda'],
  'pinned-source': ['one call, source from pinned()', pinnedSource, 'cuda'],
  'resident-kept': ['resident source, results kept', residentKept, 'cuda'],
  'resident-dropped': ['resident source, results dropped', residentDropped, 'cuda'],
  'resident-out': ['resident source, into an out', residentOut, 'cuda'],
  'resident-pinned': ['resident source, pinned index and out', residentPinned, 'cuda'],
  kernels: ['kernel alone', kernelRows, 'cuda'],
  cpu: ['one call on the CPU', onCpu, 'cpu'],
  'small-cpu': ['many calls of 64 indices, 64 at a time', smallCalls('cpu'), 'cpu'],
  'small-cuda': ['many calls of 64 indices, 64 at a time', smallCalls('cuda'), 'cuda'],
  'loop-cpu': ['event loop', delays('cpu'), 'cpu'],
  'loop-cuda': ['event loop', delays('cuda'), 'cuda'],
  from: ['DeviceArray.from', creation],
  sizes: ['times over sizes', sweep],
}
