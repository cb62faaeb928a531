// cugather doctor: what is here, what is missing, and what to do about it.

import { readFileSync } from 'node:fs'
import os from 'node:os'

const mib = (bytes) => `${Math.round(bytes / 2 ** 20)} MiB`

function hugePages() {
  try {
    return /\[(\w+)\]/.exec(
      readFileSync('/sys/kernel/mm/transparent_hugepage/enabled', 'utf8'),
    )?.[1]
  } catch {
    return undefined
  }
}

/** Gathers, on one device, something that takes several pieces: 'right', or what went wrong. */
async function check({ cudaGather, DeviceArray }, device) {
  const source = Float32Array.from({ length: 400_000 }, (_, i) => i)
  const index = Int32Array.from({ length: 400_000 }, (_, i) => (i * 7919) % source.length)
  try {
    const table = await DeviceArray.from(source, { device })
    for (const result of [await cudaGather(source, index, { device }), await table.gather(index)]) {
      const wrong = result.findIndex((value, i) => value !== index[i])
      if (wrong >= 0) return `wrong at ${wrong}: ${result[wrong]} in place of ${index[wrong]}`
    }
    table.dispose()
    return 'right'
  } catch (error) {
    return error.message
  }
}

/** Everything, as one object. */
async function examine(cugather) {
  const { cudaStatus, DeviceArray, explain, pinned } = cugather
  const status = await cudaStatus()
  const source = new Float32Array(1 << 16)
  const index = new Int32Array(16)
  const routeOf = async (from) => {
    try {
      const { route, device } = await explain(from, index)
      return { route, device }
    } catch (error) {
      return { error: error.message }
    }
  }
  const table = await DeviceArray.from(source).catch(() => undefined)
  const devices = ['cpu', ...(status.usable ? status.devices.map(({ device }) => device) : [])]
  const checks = {}
  for (const device of devices) checks[device] = await check(cugather, device)
  const { CUGATHER_DEVICE, CUGATHER_BINDING, UV_THREADPOOL_SIZE } = process.env
  const found = {
    versions: {
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
      glibc: process.report?.getReport().header.glibcVersionRuntime,
      driver: status.driverVersion,
      cuda: status.cudaVersion,
    },
    cpu: { model: os.cpus()[0]?.model, cores: os.availableParallelism() },
    cuda: { usable: status.usable, reason: status.reason },
    devices: status.devices,
    memory: status.memory,
    routes: {
      typedArray: await routeOf(source),
      pinned: await routeOf(await pinned(Float32Array, source.length)),
      deviceArray: table ? await routeOf(table) : { error: 'none could be made' },
    },
    checks,
    environment: { CUGATHER_DEVICE, CUGATHER_BINDING, UV_THREADPOOL_SIZE },
  }
  table?.dispose()
  return { ...found, advice: adviceOn(found) }
}

/** What to do, for each thing that is missing or slows gathers down. */
function adviceOn({ cuda, checks, environment, routes }) {
  const advice = []
  const { CUGATHER_DEVICE, UV_THREADPOOL_SIZE } = environment
  const refused = Object.values(routes).find(({ error }) => error)?.error
  if (refused) advice.push(`A gather that names no device fails: ${refused}.`)
  if (refused && CUGATHER_DEVICE)
    advice.push(`Unset CUGATHER_DEVICE, which is '${CUGATHER_DEVICE}', or change it to auto.`)
  if (!refused && !cuda.usable) advice.push(`Gathers run on the CPU: ${cuda.reason}.`)
  for (const [device, outcome] of Object.entries(checks)) {
    if (outcome !== 'right') advice.push(`A gather on ${device} failed: ${outcome}`)
  }
  if (CUGATHER_DEVICE && !refused)
    advice.push(`CUGATHER_DEVICE=${CUGATHER_DEVICE} is where calls run that name no device.`)
  if (UV_THREADPOOL_SIZE === '1')
    advice.push(
      'UV_THREADPOOL_SIZE=1: a gather and fs take turns on one thread; set it to 3 or more.',
    )
  if (process.platform === 'linux' && hugePages() === 'never')
    advice.push(
      'Transparent huge pages are off: large results and tables are slower. As root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled',
    )
  return advice
}

const MEMORY = { deviceBytes: 'Device memory', pinnedBytes: 'Page-locked memory' }

const SOURCES = {
  typedArray: 'a typed array',
  pinned: 'an array from pinned()',
  deviceArray: 'a DeviceArray',
}

function* lines(found) {
  const { versions, cpu, cuda, devices, memory, routes, checks, advice } = found
  const known = Object.entries(versions).filter(([, version]) => version)
  yield known.map(([name, version]) => `${name} ${version}`).join(', ')
  yield `CPU  ${cpu.model}, ${cpu.cores} cores`
  yield `CUDA ${cuda.usable ? 'usable' : 'not usable'}`
  for (const { device, name, computeCapability, memory } of devices)
    yield `  ${device}  ${name}, compute capability ${computeCapability}, ${mib(memory.free)} of ${mib(memory.total)} free`
  for (const [kind, { limit, kept, used }] of Object.entries(cuda.usable ? memory : {}))
    yield `${MEMORY[kind]} that cugather holds: ${mib(used)} in use, ${mib(kept)} kept for later calls, of at most ${mib(limit)}`
  yield 'A gather that names no device, from'
  for (const [from, { route, device, error }] of Object.entries(routes))
    yield `  ${SOURCES[from]}: ${error ?? `${route} on ${device}`}`
  yield 'A gather that was checked, on'
  for (const [device, outcome] of Object.entries(checks)) yield `  ${device}: ${outcome}`
  for (const each of advice) yield `→ ${each}`
}

export async function doctor(cugather, { json }) {
  const found = await examine(cugather)
  const text = json ? JSON.stringify(found, null, 2) : [...lines(found)].join('\n')
  process.stdout.write(`${text}\n`)
  // No CUDA is no fault, unless it was asked for: then there is no route.
  const isWrong = Object.values(found.checks).some((outcome) => outcome !== 'right')
  const isRefused = Object.values(found.routes).some(({ error }) => error)
  if (isWrong || isRefused) process.exitCode = 1
}
