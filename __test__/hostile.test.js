const { execFile } = require('node:child_process')
const path = require('node:path')
const test = require('ava')

// Longer: CUGATHER_HOSTILE_RUNS=1000000 npx ava __test__/hostile.test.js --timeout 60m
const runs = process.env.CUGATHER_HOSTILE_RUNS ?? '2000'

test('hostile arguments end no process and go unanswered by none', async (t) => {
  const script = path.join(__dirname, 'helpers', 'hostile.js')
  const outcome = await new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      ['--expose-gc', script, runs],
      (_error, stdout, stderr) =>
        resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr }),
    )
  })
  t.deepEqual(outcome, { code: 0, signal: null, stdout: `${runs}\n`, stderr: '' })
})
