// npm run test:faults: on the stand-in driver, the whole suite, then every driver call of every
// scenario made to fail in turn. Prints what was injected and how much of it was survived.

import { execFile, spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { kernelCheck } from './build.mjs'
import { loadFailures } from './loading.mjs'

const require = createRequire(import.meta.url)
const { Control, FUNCTIONS } = require('./control.js')
const { endsByItself } = require('../helpers/child.js')
const { codesThatPass, codesThatStay, meetsDeath } = require('./errors.js')
const scenarios = Object.keys(require('./scenarios.js'))

const here = path.dirname(fileURLToPath(import.meta.url))
const root = path.join(here, '..', '..')
const onStandIn = { ...process.env, LD_LIBRARY_PATH: path.join(root, 'target', 'stand-in') }

/** Runs inject.js; resolves to its exit code, signal, output and the calls that it made. */
function inject(...args) {
  const control = Control.create()
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...endsByItself, path.join(here, 'inject.js'), ...args],
      {
        env: { ...onStandIn, CUGATHER_DEVICE: '', CUGATHER_STAND_IN: control.file },
        timeout: 300_000,
      },
      (_error, stdout, stderr) => {
        const { calls } = control
        control.remove()
        resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr, calls })
      },
    )
  })
}

const totals = { injected: 0, survived: 0 }
const failures = []

function record(what, { code, signal, stdout, stderr }, faults, wanted = 0) {
  totals.injected += faults
  const survived = code === wanted && !signal && stderr === ''
  if (survived) totals.survived += faults
  else failures.push(`${what}: code ${code}, signal ${signal}\n${stdout}${stderr}`)
  return survived
}

/** Works through tasks, as many at a time as there are cores. */
async function inParallel(tasks) {
  const next = tasks[Symbol.iterator]()
  const work = async () => {
    for (const task of next) await task()
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
}

/** Faults that pass, at every call of a scenario whose device is there already: one process. */
const steady = (scenario) => async () => {
  const outcome = await inject('steady', scenario)
  record(`steady, ${scenario}`, outcome, Number(outcome.stdout) || 1)
}

/** One function failing at its first call, its second, … until the scenario does not meet it. */
const eachCall = (fault) => async () => {
  for (let call = 1; call <= (fault.calls ?? Number.POSITIVE_INFINITY); call++) {
    const outcome = await inject('once', JSON.stringify({ ...fault, call }))
    if (outcome.stdout.trim() === '0' && outcome.code === 0) return
    // What fails here fails at the later calls too.
    if (!record(`once, ${JSON.stringify({ ...fault, call })}`, outcome, 1)) return
  }
}

/** A process that ends as it is told to while gathers are failing. */
const exiting = (fault) => async () => {
  const outcome = await inject('once', JSON.stringify(fault))
  record(`exit, ${JSON.stringify(fault)}`, outcome, 1, fault.exit.code)
}

function* tasks() {
  for (const scenario of scenarios) yield steady(scenario)
  const [first] = scenarios
  for (const name of FUNCTIONS) {
    for (const device of [undefined, 'cuda']) {
      for (const code of codesThatPass(name))
        yield eachCall({ scenario: first, device, name, code })
    }
    if (!meetsDeath(name)) continue
    for (const code of codesThatStay) {
      for (const scenario of scenarios) {
        // Deaths at the first two calls: past those a scenario repeats itself.
        yield eachCall({ scenario, device: 'cuda', name, code, sticky: true, calls: 2 })
      }
      const exit = { code: 7, after: 2 }
      yield exiting({
        scenario: 'many at once',
        device: 'cuda',
        name,
        call: 1,
        code,
        sticky: true,
        exit,
      })
    }
  }
}

console.log('== the kernels under the address and undefined-behaviour sanitizers')
if (spawnSync(kernelCheck, { stdio: 'inherit' }).status !== 0) failures.push('kernel-check')

console.log('== the suite on the stand-in driver')
const ava = [path.join(root, 'node_modules', 'ava', 'entrypoints', 'cli.mjs')]
const suite = spawnSync(process.execPath, ava, {
  cwd: root,
  env: { ...onStandIn, CUGATHER_DEVICE: 'cuda' },
  stdio: 'inherit',
})
if (suite.status !== 0) failures.push('the suite fails on the stand-in driver')

console.log('== a libcuda that is of no use')
const loading = await loadFailures()
failures.push(...loading.failures)
console.log(`${loading.count} load failures, ${loading.count - loading.failures.length} survived`)

console.log('== every driver call fails in turn')
await inParallel([...tasks()])
for (const failure of failures) console.log(`FAILED ${failure}`)
console.log(`${totals.injected} faults injected, ${totals.survived} survived`)
if (failures.length > 0 || totals.injected === 0) process.exitCode = 1
