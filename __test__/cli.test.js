// The program, unbundled; npm run test:package tries the one that is shipped.

const test = require('ava')
const { execFile } = require('node:child_process')
const path = require('node:path')
const { root } = require('./helpers/child.js')
const { devices } = require('./helpers/machine.js')

function cli(args, env = {}) {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [path.join(root, 'cli', 'run.mjs'), ...args],
      { env: { ...process.env, ...env }, timeout: 120_000 },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    )
  })
}

test('doctor says what is here, and checks it', async (t) => {
  const { code, stdout, stderr } = await cli(['doctor'])
  t.deepEqual([code, stderr], [0, ''])
  t.regex(stdout, /^node \d+/)
  t.regex(stdout, / {2}cpu: right/)
  t.is(/ {2}cuda:0: right/.test(stdout), devices.includes('cuda'))
  t.false(stdout.includes('\u001b'))
})

test('doctor --json', async (t) => {
  const { code, stdout } = await cli(['doctor', '--json'])
  const found = JSON.parse(stdout)
  t.is(code, 0)
  t.is(found.cuda.usable, devices.includes('cuda'))
  t.is(found.checks.cpu, 'right')
  t.true(found.memory.pinnedBytes.limit > 0)
  t.is(
    found.advice.length > 0,
    !found.cuda.usable || found.environment.CUGATHER_DEVICE !== undefined,
  )
})

test('doctor: CUDA that was asked for and is not there is a fault', async (t) => {
  const env = { CUGATHER_DEVICE: 'cuda', CUDA_VISIBLE_DEVICES: '', LD_LIBRARY_PATH: '' }
  const { code, stdout } = await cli(['doctor'], env)
  t.is(code, 1)
  t.regex(stdout, /→ A gather that names no device fails: CUDA is not usable: .+/)
  t.regex(stdout, /→ Unset CUGATHER_DEVICE, which is 'cuda'/)
  t.false(stdout.includes('run on the CPU'))
  const wrong = await cli(['doctor'], { CUGATHER_DEVICE: 'gpu' })
  t.is(wrong.code, 1)
  t.regex(wrong.stdout, /→ A gather that names no device fails: .+ received string 'gpu'/)
})

test('bench prints a table, and nothing but that', async (t) => {
  const sizes = ['--source-length', '100000', '--index-length', '5000']
  const { code, stdout, stderr } = await cli(['bench', ...sizes])
  t.deepEqual([code, stderr], [0, ''])
  t.regex(stdout, /^indices +1250 +5000$/m)
  t.regex(stdout, /^cugather, cpu +\S+ [um]s +\S+ [um]s$/m)
  const { series } = JSON.parse((await cli(['bench', '--json', ...sizes])).stdout)
  t.is('cugather, resident' in series, devices.includes('cuda'))
})

test('what it does not know', async (t) => {
  for (const args of [[], ['cure'], ['doctor', 'bench'], ['doctor', '--fast']]) {
    const { code, stdout, stderr } = await cli(args)
    t.deepEqual([code, stdout], [2, ''])
    t.regex(stderr, /cugather doctor \[--json\]/)
  }
  for (const [option, value, words] of [
    [
      '--source-length',
      '0',
      "an integer from 1 to 2147483647 for --source-length but received '0'",
    ],
    ['--index-length', '1e12', "from 1 to 2147483647 for --index-length but received '1e12'"],
    ['--device', 'cpu', "Expected cuda:N for --device but received 'cpu'"],
  ]) {
    const { code, stderr } = await cli(['bench', option, value])
    t.is(code, 2)
    t.true(stderr.includes(words), stderr)
  }
})

test('bench fails before it measures', async (t) => {
  // More devices than any machine has.
  for (const [option, value, words] of [
    ['--device', 'cuda:99', /^(the NVIDIA driver|CUDA|there is|no |device ).*/i],
    [
      '--svg',
      path.join(root, 'no-such-folder', 'times.svg'),
      /^The chart can't be written: ENOENT/,
    ],
  ]) {
    const { code, stdout, stderr } = await cli(['bench', option, value])
    t.deepEqual([code, stdout], [1, ''])
    t.regex(stderr, words)
  }
})

test('help and version', async (t) => {
  for (const option of ['--help', '-h']) {
    const { code, stdout } = await cli([option])
    t.is(code, 0)
    t.regex(stdout, /^Usage:/)
  }
  const { stdout } = await cli(['-v'])
  t.is(stdout.trim(), require('../package.json').version)
})
