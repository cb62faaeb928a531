// npx cugather: is CUDA usable here, and how fast is it? Bundled into one file, cli.js, for the package,
// which so depends on nothing.

import { parseArgs } from 'node:util'
import { UsageError } from './usage-error.mjs'

const OPTIONS = {
  json: { type: 'boolean', default: false },
  svg: { type: 'string' },
  device: { type: 'string' },
  'source-length': { type: 'string', default: String(2 ** 24) },
  'index-length': { type: 'string', default: String(2 ** 20) },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', short: 'v', default: false },
}

const HELP = `Usage:

cugather doctor [--json]
  Says whether a GPU can be used here, which route a gather would take, and what to do about
  whatever is missing. Checks a gather on each device.

cugather bench [--json] [--svg FILE] [--device cuda:N] [--source-length N] [--index-length N]
  Times gathers on this machine beside a JavaScript loop: of up to ${OPTIONS['index-length'].default}
  indices, out of ${OPTIONS['source-length'].default} elements, on the GPU cuda:0 where there is one.

cugather --help, cugather --version
`

const COMMANDS = {
  doctor: async (cugather, values) => (await import('./doctor.mjs')).doctor(cugather, values),
  bench: async (cugather, values) => (await import('./bench.mjs')).bench(cugather, values),
}

/** Runs one command; `load` requires cugather, whose own error is the answer where it can't. */
export async function main(args, { load, version }) {
  const usage = (words) => {
    process.stderr.write(`${words}\n\n${HELP}`)
    process.exitCode = 2
  }
  let parsed
  try {
    parsed = parseArgs({ args, options: OPTIONS, allowPositionals: true })
  } catch (error) {
    return usage(error.message)
  }
  const { values, positionals } = parsed
  if (values.help) return process.stdout.write(HELP)
  if (values.version) return process.stdout.write(`${version}\n`)
  const command = positionals.length === 1 && Object.hasOwn(COMMANDS, positionals[0])
  if (!command) {
    const received = positionals.length > 0 ? `'${positionals.join(' ')}'` : 'neither'
    return usage(`Expected doctor or bench but received ${received}`)
  }
  try {
    await COMMANDS[positionals[0]](load(), values)
  } catch (error) {
    if (error instanceof UsageError) return usage(error.message)
    // Such as an addon that can't be loaded: its message says what to do.
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}
