// npm run bench: measures every figure that cugather has to reach, beside a JavaScript loop and, where
// they are installed, numpy, PyTorch, CuPy and the article's program, on the same random data in one
// run. Every result is compared with the right one, bit for bit.

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const require = createRequire(import.meta.url)
// Before anything else of it is loaded.
const beforeRequire = performance.now()
const cugather = require('../index.js')
const requireMs = performance.now() - beforeRequire

const { SingleBar } = require('cli-progress')
const { Files, fillRandom } = await import('./data.mjs')
const { Python } = await import('./peers.mjs')
const { count, markdownTable, textTable } = await import('./report.mjs')
const { rows: ROWS } = await import('./rows.mjs')

const HELP = `npm run bench -- [options]

  --rows NAME,…    only these: ${Object.keys(ROWS).join(', ')}
  --quick          small sizes and few rounds, to see that it works; its figures say little
  --out FOLDER     writes bench.json, bench.md and the charts there
  --python COMMAND the Python that has numpy, PyTorch and CuPy (default python3)
  --device cuda:N  the device (default cuda:0)
  --strict         a figure that is missed is a failure too
`

const here = path.dirname(fileURLToPath(import.meta.url))
const SEED = 20261201

function readArguments() {
  const { values } = parseArgs({
    options: {
      rows: { type: 'string' },
      quick: { type: 'boolean', default: false },
      out: { type: 'string' },
      python: { type: 'string', default: 'python3' },
      device: { type: 'string', default: 'cuda:0' },
      strict: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const names = values.rows?.split(',') ?? Object.keys(ROWS)
  const unknown = names.find((name) => !ROWS[name])
  if (unknown !== undefined) throw new Error(`There is no row '${unknown}'.\n\n${HELP}`)
  return { ...values, names }
}

/** What the figures were measured on. */
async function machineOf(python) {
  const { devices, driverVersion, usable, reason } = await cugather.cudaStatus()
  // With '-dirty' behind it where the tree is not that of the commit.
  const describe = ['describe', '--always', '--dirty', '--exclude', '*']
  const git = spawnSync('git', describe, { cwd: here, encoding: 'utf8' })
  return {
    date: new Date().toISOString().slice(0, 10),
    cpu: os.cpus()[0]?.model ?? 'unknown CPU',
    cores: os.availableParallelism(),
    gpu: usable ? devices[0].name : null,
    why: usable ? undefined : reason,
    versions: {
      cugather: require('../package.json').version,
      commit: git.status === 0 ? git.stdout.trim() : undefined,
      Node: process.versions.node,
      driver: driverVersion ?? undefined,
      ...python.versions,
    },
  }
}

/** The row for two cores, in a process that has no more: the limits are for so many. */
function onTwoCores(options) {
  const out = mkdtempSync(path.join(os.tmpdir(), 'cugather-bench-cpu-'))
  try {
    const args = [process.execPath, fileURLToPath(import.meta.url), '--rows', 'cpu', '--out', out]
    args.push('--python', options.python, ...(options.quick ? ['--quick'] : []))
    execFileSync('taskset', ['-c', twoCores(), ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
    return JSON.parse(readFileSync(path.join(out, 'bench.json'), 'utf8')).rows
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}

/** Two processors that are not two threads of one core, where the system says which are. */
function twoCores() {
  const list = '/sys/devices/system/cpu/cpu0/topology/thread_siblings_list'
  if (!existsSync(list)) return '0,1'
  // Such as '0-1' or '0,8'.
  const siblings = readFileSync(list, 'utf8').trim().split(/[-,]/).map(Number)
  return `0,${siblings.length > 1 && siblings[1] === 1 ? siblings.at(-1) + 1 : 1}`
}

const canRestrict = () =>
  os.availableParallelism() > 2 && spawnSync('taskset', ['--version']).status === 0

async function measureRow(name, bench, options) {
  const [title, work, device] = ROWS[name]
  try {
    if (name === 'cpu' && canRestrict()) return onTwoCores(options)
    const measured = await work(bench)
    const list = Array.isArray(measured) ? measured : [measured]
    return list.map((row) => ({ name: title, device, ...row }))
  } catch (error) {
    return [{ name: title, device, error: error.message }]
  }
}

async function main() {
  const options = readArguments()
  if (options.help) return process.stdout.write(HELP)
  const python = await Python.start(options.python)
  const machine = await machineOf(python)
  const files = new Files()
  const { quick, device } = options
  const measureBus = async () => {
    const { up, down } = await python.measure('pytorch', 'bus', { rounds: 5, warmup: 2 })
    return { up, down }
  }
  let bus
  const bench = {
    cugather,
    files,
    python,
    pythonCommand: options.python,
    quick,
    device: machine.gpu ? device : 'cpu',
    cuda: machine.gpu !== null,
    cores: machine.cores,
    rounds: quick ? 5 : 21,
    indexLength: quick ? 1 << 16 : 1 << 20,
    source: fillRandom(new Float32Array(quick ? 1 << 22 : 1 << 27), SEED),
    bus: () => {
      bus ??= measureBus()
      return bus
    },
  }
  const rows = [{ name: "require('cugather')", cugather: { ms: requireMs } }]
  const bar =
    process.stdout.isTTY &&
    new SingleBar({ format: '{bar} {value}/{total} {row}', clearOnComplete: true })
  if (bar) bar.start(options.names.length, 0, { row: '' })
  try {
    for (const name of options.names) {
      if (bar) bar.update({ row: name })
      else console.log(`measuring ${name}`)
      rows.push(...(await measureRow(name, bench, options)))
      if (bar) bar.increment()
    }
  } finally {
    if (bar) bar.stop()
    files.remove()
    python.stop()
  }
  const series = rows.find((row) => row.series)?.series
  const report = {
    machine,
    options: { quick, rounds: bench.rounds, source: bench.source.length, index: bench.indexLength },
    bus: bus && (await bus),
    rows: rows.filter((row) => !row.series),
    series,
  }
  console.log(
    `\n${machine.gpu ?? `no GPU: ${machine.why}`}; ${machine.cpu}, ${machine.cores} cores\n`,
  )
  console.log(textTable(report.rows))
  const { met, missed, unknown, failed } = count(report.rows)
  console.log(`\n${met} met, ${missed} missed, ${unknown} not measured, ${failed} failed`)
  if (options.out) await write(options.out, report)
  if (failed > 0 || (options.strict && missed > 0)) process.exitCode = 1
}

async function write(folder, report) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'bench.json'), `${JSON.stringify(report, null, 1)}\n`)
  writeFileSync(path.join(folder, 'bench.md'), markdownTable(report))
  if (!report.series) return
  try {
    const { drawChart } = await import('./charts.mjs')
    writeFileSync(path.join(folder, 'sizes.svg'), drawChart(report))
  } catch (error) {
    // The chart can be drawn from bench.json where the library is: node bench/charts.mjs FOLDER.
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    console.log('no chart: echarts is not installed')
  }
}

await main()
