// A job that numpy users know as source[index]: a million random elements out of 128 Mi, gathered off the event loop and
// compared, bit for bit, with a JavaScript gather.

const { monitorEventLoopDelay } = require('node:perf_hooks')
const { setImmediate: nextTurn } = require('node:timers/promises')
const { parseArgs } = require('node:util')
const { SingleBar } = require('cli-progress')
const { xoroshiro128plus } = require('pure-rand/generator/xoroshiro128plus')
const { uniformFloat32 } = require('pure-rand/distribution/uniformFloat32')
const { uniformInt } = require('pure-rand/distribution/uniformInt')
const { cudaGather, cudaStatus, explain } = require('../index.js')

const SEED = 20261201
const ROUNDS = 5

const USAGE =
  'npm run demo -- [--source-length N] [--index-length N] [--device cpu|cuda|cuda:N|auto]'

function readArguments() {
  const { values } = parseArgs({
    options: {
      'source-length': { type: 'string', default: String(128 * 2 ** 20) },
      'index-length': { type: 'string', default: String(2 ** 20) },
      device: { type: 'string' },
    },
  })
  const lengthOf = (name, least) => {
    const length = Number(values[name])
    if (Number.isInteger(length) && length >= least) return length
    throw new Error(`Expected an integer of ${least} or more for --${name}, got '${values[name]}'`)
  }
  return {
    source: new Float32Array(lengthOf('source-length', 1)),
    index: new Int32Array(lengthOf('index-length', 0)),
    device: values.device,
  }
}

/** Fills an array from `next`, with a progress line on a terminal. */
async function fill(name, array, next) {
  const bar = new SingleBar({ format: `${name} {bar} {percentage}%`, clearOnComplete: true })
  bar.start(array.length, 0)
  const step = 1 << 22
  for (let start = 0; start < array.length; start += step) {
    const end = Math.min(start + step, array.length)
    for (let i = start; i < end; i++) array[i] = next()
    bar.update(end)
    await nextTurn()
  }
  bar.stop()
}

function javascriptGather(source, index) {
  const result = new Float32Array(index.length)
  for (let i = 0; i < index.length; i++) {
    const row = index[i]
    result[i] = source[row < 0 ? row + source.length : row]
  }
  return result
}

/** Milliseconds that `work` takes, and what it gives. */
async function timed(work) {
  const start = performance.now()
  const result = await work()
  return { ms: performance.now() - start, result }
}

/** The median time of ROUNDS runs, and the last result. */
async function medianOf(work) {
  const runs = []
  for (let round = 0; round < ROUNDS; round++) runs.push(await timed(work))
  const { result } = runs.at(-1)
  return { ms: runs.map(({ ms }) => ms).sort((a, b) => a - b)[ROUNDS >> 1], result }
}

async function main({ source, index, device }) {
  const random = xoroshiro128plus(SEED)
  console.log(`${source.length} random float32, ${index.length} random int32 indices, seed ${SEED}`)
  await fill('source', source, () => uniformFloat32(random))
  await fill('index ', index, () => uniformInt(random, -source.length, source.length - 1))

  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await nextTurn()
  const first = await timed(() => cudaGather(source, index, { device }))
  const gather = await medianOf(() => cudaGather(source, index, { device }))
  delay.disable()

  const route = await explain(source, index, { device })
  const { devices } = await cudaStatus()
  const model = devices.find((found) => found.device === route.device)?.name
  console.log(`device ${route.device}${model ? ` (${model})` : ''}, route ${route.route}`)

  const loop = await medianOf(() => javascriptGather(source, index))
  const expected = new Uint32Array(loop.result.buffer)
  const bits = [first, gather].map(({ result }) => new Uint32Array(result.buffer))
  let equal = 0
  for (let i = 0; i < expected.length; i++) {
    if (bits.every((result) => result[i] === expected[i])) equal++
  }
  console.log(`shape (${gather.result.length},)`)
  console.log(`equal elements ${equal}`)
  const ms = (time) => `${time.toFixed(2)} ms`
  console.log(`cudaGather ${ms(gather.ms)} (median of ${ROUNDS}), the first call ${ms(first.ms)}`)
  console.log(`JavaScript loop ${ms(loop.ms)} (median of ${ROUNDS})`)
  console.log(`cudaGather takes ${(gather.ms / loop.ms).toFixed(2)} times the loop`)
  console.log(`largest event-loop delay ${ms(delay.max / 1e6)}, the first call included`)
  if (equal !== index.length) process.exitCode = 1
}

async function run() {
  try {
    await main(readArguments())
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`)
    process.exitCode = 2
  }
}

run()
