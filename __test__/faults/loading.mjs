// A libcuda that can't be used, for whatever reason: every call that names no device is answered by
// the CPU, every one that does says why, in the same words each time, and the driver is not asked
// again.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const { Control } = createRequire(import.meta.url)('./control.js')
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..')
const built = (...names) => path.join(root, 'target', 'stand-in', ...names)

const CODE = `
  const { cudaGather, cudaStatus } = require(${JSON.stringify(root)})
  const gather = (device) => cudaGather(Float32Array.of(10, 20, 30), Int32Array.of(2, 0, -1), { device })
  const refused = () => gather('cuda').then(() => 'gathered', (error) => error.code + ': ' + error.message)
  const main = async () => [[...await gather()], await refused(), await refused(), [...await gather()], await cudaStatus()]
  main().then((outcome) => console.log(JSON.stringify(outcome)))
`

/** What a process sees that finds its libcuda in `folder`. */
function see(folder, environment = {}, fault = null) {
  const control = Control.create()
  if (fault) control.fail(fault)
  const env = {
    ...process.env,
    CUGATHER_DEVICE: '',
    LD_LIBRARY_PATH: folder,
    CUGATHER_STAND_IN: control.file,
    ...environment,
  }
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ['-e', CODE], { env }, (_error, stdout, stderr) => {
      const { calls } = control
      control.remove()
      resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr, calls })
    })
  })
}

async function check({ reason, folder = built(), env, fault, onceOnly }) {
  const { code, signal, stdout, stderr, calls } = await see(folder, env, fault)
  assert.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: '' })
  const [first, refused, again, second, status] = JSON.parse(stdout)
  assert.deepEqual(first, [30, 10, 30])
  assert.deepEqual(second, [30, 10, 30])
  assert.match(refused, reason)
  assert.match(refused, /^ERR_CUDA_UNAVAILABLE: CUDA is not usable: /)
  assert.equal(again, refused)
  assert.equal(status.usable, false)
  assert.equal(`ERR_CUDA_UNAVAILABLE: CUDA is not usable: ${status.reason}`, refused)
  if (onceOnly) assert.equal(calls[onceOnly], 1, `${onceOnly} was called ${calls[onceOnly]} times`)
}

/** Every case in turn; gives the number of cases and what went wrong. */
export async function loadFailures() {
  const garbage = mkdtempSync(path.join(tmpdir(), 'cugather-garbage-'))
  for (const name of ['libcuda.so', 'libcuda.so.1'])
    writeFileSync(path.join(garbage, name), 'no library')
  const module = (code) => ({ name: 'cuModuleLoadData', call: 1, code })
  const cases = {
    'a libcuda that is no library': {
      folder: garbage,
      reason: /could not be loaded \(.*libcuda\.so\.1: file too short\): install the NVIDIA driver/,
    },
    "the toolkit's stubs folder": {
      folder: built('stubs'),
      reason: /cuInit failed with .*\(error 34\).*stubs folder/,
    },
    'a libcuda that lacks functions': {
      folder: built('lacking'),
      reason: /has no function cu\w+: install/,
    },
    'CUDA_VISIBLE_DEVICES empty': {
      env: { CUDA_VISIBLE_DEVICES: '' },
      reason: /\(error 100\): no NVIDIA GPU/,
    },
    'CUDA_VISIBLE_DEVICES=-1': { env: { CUDA_VISIBLE_DEVICES: '-1' }, reason: /\(error 100\)/ },
    'CUDA_VISIBLE_DEVICES=99': { env: { CUDA_VISIBLE_DEVICES: '99' }, reason: /\(error 100\)/ },
    'a driver that counts no device': {
      env: { CUGATHER_STAND_IN_DEVICES: '0' },
      reason: /sees no GPU/,
    },
    'a driver too old for the PTX': {
      fault: module(222),
      onceOnly: 'cuModuleLoadData',
      reason: /\(error 222\).*R525/,
    },
    'a driver without its compiler': {
      fault: module(221),
      onceOnly: 'cuModuleLoadData',
      reason: /\(error 221\).*libnvidia-ptxjitcompiler/,
    },
    'no code for the GPU': {
      fault: module(209),
      onceOnly: 'cuModuleLoadData',
      reason: /\(error 209\)/,
    },
    'a system that is not ready': {
      fault: { name: 'cuInit', call: 1, code: 802 },
      onceOnly: 'cuInit',
      reason: /\(error 802\).*nvidia-fabricmanager/,
    },
    'a library older than its kernel module': {
      fault: { name: 'cuInit', call: 1, code: 803 },
      onceOnly: 'cuInit',
      reason: /\(error 803\)/,
    },
  }
  const failures = []
  for (const [name, each] of Object.entries(cases)) {
    await check(each).catch((error) => failures.push(`${name}: ${error.stack}`))
  }
  rmSync(garbage, { recursive: true })
  return { count: Object.keys(cases).length, failures }
}
