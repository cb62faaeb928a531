// cugather bench: a short form of npm run bench, for the user's own machine.

import { accessSync, constants, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import cliProgress from 'cli-progress'
import { expectedOf, fillRandom, randomIndex, sameBytes } from '../bench/data.mjs'
import { summary, timesOf } from '../bench/measure.mjs'
import { UsageError } from './usage-error.mjs'

const SEED = 20261201
const ROUNDS = 9

const MOST = 2 ** 31 - 1

function lengthOf(name, value) {
  const length = Number(value)
  if (Number.isInteger(length) && length >= 1 && length <= MOST) return length
  throw new UsageError(
    `Expected an integer from 1 to ${MOST} for --${name} but received '${value}'`,
  )
}

/** A GPU that is named has to be there; without a name it is the first one, if there is one. */
async function deviceOf({ DeviceArray }, named) {
  if (named === undefined) return 'cuda:0'
  if (!/^cuda(:\d+)?$/.test(named))
    throw new UsageError(`Expected cuda:N for --device but received '${named}'`)
  const array = await DeviceArray.from(new Float32Array(1), { device: named })
  array.dispose()
  return named
}

/** Fails before the measuring, not after it, where the chart can't be written. */
function checkChart(file) {
  try {
    accessSync(path.dirname(path.resolve(file)), constants.W_OK)
  } catch (error) {
    throw new Error(`The chart can't be written: ${error.message}`)
  }
}

/** The ways of a gather here, by their names in the chart. */
async function waysOf({ cudaGather, cudaStatus, DeviceArray, pinned }, source, device) {
  const loop = (index) => {
    const out = new Float32Array(index.length)
    for (let i = 0; i < index.length; i++) out[i] = source[index[i]]
    return out
  }
  const ways = {
    'JavaScript loop': { work: loop, movesNumbers: true },
    'cugather, cpu': { work: (index) => cudaGather(source, index, { device: 'cpu' }) },
  }
  const { usable, devices } = await cudaStatus()
  if (!usable) return { gpu: null, ways }
  const table = await DeviceArray.from(source, { device })
  const mapped = await pinned(Float32Array, source.length)
  mapped.set(source)
  Object.assign(ways, {
    'cugather, upload': { work: (index) => cudaGather(source, index, { device }) },
    'cugather, pinned source': { work: (index) => cudaGather(mapped, index, { device }) },
    'cugather, resident': { work: (index) => table.gather(index) },
  })
  const { name } = devices.find((each) => each.device === table.device) ?? devices[0]
  return { gpu: name, ways }
}

export async function bench(cugather, values) {
  const length = lengthOf('source-length', values['source-length'])
  const most = lengthOf('index-length', values['index-length'])
  if (values.svg !== undefined) checkChart(values.svg)
  const device = await deviceOf(cugather, values.device)
  const source = fillRandom(new Float32Array(length), SEED)
  const { gpu, ways } = await waysOf(cugather, source, device)
  const sizes = []
  for (let size = most; size >= Math.min(most, 1024); size = Math.floor(size / 4))
    sizes.unshift(size)
  const bar =
    process.stderr.isTTY &&
    new cliProgress.SingleBar({ format: '{bar} {percentage}% {way}', clearOnComplete: true })
  if (bar) bar.start(sizes.length * Object.keys(ways).length, 0, { way: '' })
  const series = {}
  for (const size of sizes) {
    const index = randomIndex(size, source.length, size)
    const expected = expectedOf(source, index)
    for (const [way, { work, movesNumbers }] of Object.entries(ways)) {
      if (bar) bar.increment({ way })
      const check = (result) => {
        // A loop moves numbers, which keeps not every NaN's bits.
        if (!movesNumbers && !sameBytes(result, expected)) throw new Error(`${way}: a wrong result`)
      }
      const { ms } = summary(await timesOf(async () => work(index), { rounds: ROUNDS, check }))
      series[way] ??= []
      series[way].push([size, ms])
    }
  }
  if (bar) bar.stop()
  const report = {
    machine: { gpu, cpu: os.cpus()[0]?.model, cores: os.availableParallelism() },
    options: { source: source.length, index: most },
    series,
  }
  process.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : table(report, sizes))
  if (values.svg !== undefined) {
    // Only here, since it is most of the program.
    const { drawChart } = await import('../bench/charts.mjs')
    writeFileSync(values.svg, drawChart(report))
  }
}

function table({ machine, options, series }, sizes) {
  const cell = (ms) => (ms < 0.1 ? `${(ms * 1000).toFixed(0)} us` : `${ms.toPrecision(3)} ms`)
  const head = ['indices', ...sizes.map(String)]
  const rows = Object.entries(series).map(([way, points]) => [
    way,
    ...points.map(([, ms]) => cell(ms)),
  ])
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i].length)))
  const line = (row) =>
    row.map((text, i) => (i ? text.padStart(widths[i]) : text.padEnd(widths[i]))).join('  ')
  return [
    `${machine.gpu ?? 'no usable GPU'}; ${machine.cpu}, ${machine.cores} cores`,
    `random float32 out of ${options.source}; medians of ${ROUNDS} calls, promise and all`,
    '',
    ...[head, ...rows].map(line),
    '',
  ].join('\n')
}
