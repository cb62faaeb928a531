// Packs all that a GPU machine without Node, npm or a registry needs into gpu-bundle/: the built
// addon, the tests with their runner, the demo, the kernels, the benchmark, and this Node.
// There, gpu-bundle/run.sh runs them. It needs bash, python3 and the NVIDIA driver, nothing else.

import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildEmptyTask } from '../bench/peers.mjs'

const MOST_MIB = 60

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const bundle = path.join(root, 'gpu-bundle')
const inside = path.join(bundle, 'cugather')

/** Folders of packages and of all that they need, by Node's own way of finding them. */
function packagesWithNeeds(names, from = root, found = new Set()) {
  for (const name of names) {
    const folder = createRequire(path.join(from, 'package.json'))
      .resolve.paths(name)
      .map((place) => path.join(place, name))
      .find((place) => existsSync(path.join(place, 'package.json')))
    if (!folder || found.has(folder)) continue
    found.add(folder)
    const needs = createRequire(import.meta.url)(path.join(folder, 'package.json')).dependencies
    packagesWithNeeds(Object.keys(needs ?? {}), folder, found)
  }
  return found
}

function copy(relative) {
  cpSync(path.join(root, relative), path.join(inside, relative), {
    recursive: true,
    // Nested packages are copied on their own where they are needed.
    filter: (from) =>
      !/node_modules|[/\\](results|target)$/.test(from.slice(path.join(root, relative).length)),
  })
}

function sizeOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce(
      (sum, entry) => sum + statSync(path.join(entry.parentPath ?? entry.path, entry.name)).size,
      0,
    )
}

const addons = readdirSync(root).filter((name) => name.endsWith('.node'))
if (addons.length === 0) {
  console.error('There is no built addon here: run npm install or npm run build first.')
  process.exit(1)
}

buildEmptyTask()
rmSync(bundle, { recursive: true, force: true })
mkdirSync(inside, { recursive: true })
for (const file of [
  'index.js',
  'load.js',
  'package.json',
  '__test__',
  'examples',
  'kernels',
  'bench',
  'cli',
  ...addons,
]) {
  copy(file)
}
for (const folder of packagesWithNeeds(['ava', 'fast-check', 'cli-progress', 'pure-rand'])) {
  copy(path.relative(root, folder))
}
cpSync(path.join(root, 'scripts', 'gpu-run.sh'), path.join(bundle, 'run.sh'))
const compress = `
import lzma, shutil, sys
with open(sys.argv[1], 'rb') as node, lzma.open(sys.argv[2], 'wb', preset=6) as out:
    shutil.copyfileobj(node, out, 1 << 20)
`
execFileSync('python3', ['-c', compress, process.execPath, path.join(bundle, 'node.xz')])

const mib = sizeOf(bundle) / 2 ** 20
console.log(`gpu-bundle: ${mib.toFixed(1)} MiB, of at most ${MOST_MIB}`)
if (mib > MOST_MIB) process.exit(1)
