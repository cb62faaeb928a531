// Anything that could crash, hang or print runs in a process of its own.

const { execFile } = require('node:child_process')
const path = require('node:path')

const root = path.join(__dirname, '..', '..')

// A process that compiles in the background can hang for ever at its natural end, in Node's own wait
// for V8's threads: https://github.com/nodejs/node/issues/54918. Seen once in some ten thousand ends.
const endsByItself = ['--no-concurrent-recompilation']

/**
 * Runs JavaScript in a fresh Node with `cudaGather`, `cudaStatus`, `f32` and `i32` in scope.
 * Resolves to its exit code, signal and output, whatever they are.
 */
function run(code, { env = {}, args = [], timeout = 120_000 } = {}) {
  const prelude = `
    const { cudaGather, cudaStatus } = require(${JSON.stringify(root)})
    const { f32, i32 } = require(${JSON.stringify(path.join(__dirname, 'arrays.js'))})
  `
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...endsByItself, ...args, '-e', `${prelude};(async () => {${code}})()`],
      { env: { ...process.env, ...env }, timeout, killSignal: 'SIGKILL' },
      (_error, stdout, stderr) =>
        resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr }),
    )
  })
}

/** Asserts that the code ends by itself with `code`, no signal and nothing on stderr. */
async function runsClean(t, source, { code = 0, ...options } = {}) {
  const child = await run(source, options)
  t.deepEqual(
    { code: child.code, signal: child.signal, stderr: child.stderr },
    { code, signal: null, stderr: '' },
  )
  return child.stdout
}

module.exports = { endsByItself, root, run, runsClean }
