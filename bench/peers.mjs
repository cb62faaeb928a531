// The programs that cugather is measured beside, each where this machine has what it needs.

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { summary } from './measure.mjs'

const here = path.join(path.dirname(fileURLToPath(import.meta.url)), 'peers')
const built = path.join(here, '..', '.build')

/** numpy, PyTorch and CuPy, in one Python process that peers.py says how to talk to. */
export class Python {
  #child
  #lines
  versions = {}

  /** Starts it; `prefix` is a command that it is to be started by. */
  static async start(python, prefix = []) {
    const started = new Python()
    const [command, ...args] = [...prefix, python, path.join(here, 'peers.py')]
    started.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const failed = new Promise((resolve) => started.#child.once('error', resolve))
    started.#lines = createInterface({ input: started.#child.stdout })[Symbol.asyncIterator]()
    const first = await Promise.race([started.#lines.next(), failed])
    if (first instanceof Error || first.done) started.#child = undefined
    else started.versions = JSON.parse(first.value).versions
    return started
  }

  /** What a peer takes for some work: a summary of its times, or `{ reason }`. */
  async measure(peer, work, parameters) {
    if (!this.#child) return { reason: 'Python could not be started' }
    if (!this.versions[peer]) return { reason: `${peer} is not installed, or has no GPU` }
    this.#child.stdin.write(`${JSON.stringify({ peer, work, ...parameters })}\n`)
    const { value, done } = await this.#lines.next()
    if (done) {
      this.#child = undefined
      return { reason: 'Python ended' }
    }
    const { times, equal, error, ...others } = JSON.parse(value)
    if (error) return { reason: error }
    if (equal === false) throw new Error(`the result of ${peer}, ${work}, differs`)
    return { ...(times && summary(times)), ...others }
  }

  stop() {
    this.#child?.stdin.end()
  }
}

/** The kernels beside PyTorch's, from kernels.py: its report, or `{ reason }`. */
export function kernels(python, quick) {
  const args = [path.join(here, 'kernels.py'), '--json', '-', ...(quick ? ['--quick'] : [])]
  const { status, stdout, stderr, error } = spawnSync(python, args, { encoding: 'utf8' })
  if (error) return { reason: error.message }
  if (status !== 0) return { reason: stderr.trim().split('\n').at(-1) ?? `exit code ${status}` }
  return JSON.parse(stdout)
}

/** The article's steps, compiled by nvcc where there is one: `{ reset, kept }` or `{ reason }`. */
export function article(source, index, expected, rounds) {
  mkdirSync(built, { recursive: true })
  const program = path.join(built, 'article')
  const nvcc = ['nvcc', '/usr/local/cuda/bin/nvcc'].find(
    (each) => spawnSync(each, ['--version']).status === 0,
  )
  if (!nvcc) return { reason: 'there is no nvcc' }
  execFileSync(nvcc, ['-O3', '-o', program, path.join(here, 'article.cu')])
  const args = [source, index, expected, String(rounds)]
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) return { reason: stderr.trim() || `exit code ${status}` }
  const { reset, kept, equal } = JSON.parse(stdout)
  if (!equal) throw new Error("the result of the article's program differs")
  return { reset: summary(reset), kept: summary(kept) }
}

/** A function that puts an empty task on libuv's pool and promises its end; or throws why not. */
export function emptyTask() {
  const crate = path.join(here, 'empty_task')
  const addon = path.join(built, 'empty_task.node')
  if (!existsSync(addon)) buildEmptyTask(crate, addon)
  return createRequire(import.meta.url)(addon).emptyTask
}

/** With cargo, once. */
export function buildEmptyTask(
  crate = path.join(here, 'empty_task'),
  addon = path.join(built, 'empty_task.node'),
) {
  mkdirSync(built, { recursive: true })
  execFileSync('cargo', ['build', '--release', '--locked', '--quiet'], {
    cwd: crate,
    stdio: 'inherit',
  })
  const folder = path.join(crate, 'target', 'release')
  const library = readdirSync(folder).find((name) =>
    /^(lib)?empty_task\.(so|dylib|dll)$/.test(name),
  )
  copyFileSync(path.join(folder, library), addon)
}
