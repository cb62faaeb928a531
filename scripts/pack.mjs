// npm run pack:all -- FOLDER: packs into FOLDER what is published, from artifacts/*.node: a package
// for each platform, and cugather with all of them as optional dependencies.

import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const napiCli = path.join(root, 'node_modules', '@napi-rs', 'cli', 'dist', 'cli.js')

/**
 * Packs into a folder and gives the tarballs, the platforms' first and cugather's last.
 * A platform without an artifact is an error; where `placeholders` is set, its package gets an empty
 * file for an addon, to try the other ones out.
 */
export function packAll(folder, { placeholders = false } = {}) {
  execFileSync(process.execPath, [path.join(root, 'scripts', 'build-cli.mjs')])
  // In a copy: napi writes the optional dependencies into package.json.
  const stage = mkdtempSync(path.join(os.tmpdir(), 'cugather-pack-'))
  const node = (...args) =>
    execFileSync(process.execPath, args, { cwd: stage, encoding: 'utf8', stdio: 'pipe' })
  const pack = (...args) =>
    Object.values(JSON.parse(node(npmCli(), 'pack', '--json', '--ignore-scripts', ...args)))
  try {
    const [{ files }] = pack('--dry-run', root)
    for (const { path: file } of files) cpSync(path.join(root, file), path.join(stage, file))
    const artifacts = path.join(stage, 'artifacts')
    mkdirSync(artifacts)
    if (existsSync(path.join(root, 'artifacts'))) {
      cpSync(path.join(root, 'artifacts'), artifacts, { recursive: true })
    }

    node(napiCli, 'create-npm-dirs')
    const targets = readdirSync(path.join(stage, 'npm'))
    for (const target of targets) {
      cpSync(path.join(root, 'LICENSE'), path.join(stage, 'npm', target, 'LICENSE'))
      const artifact = path.join(artifacts, `cugather.${target}.node`)
      if (placeholders && !existsSync(artifact)) writeFileSync(artifact, '')
    }
    node(napiCli, 'artifacts')
    node(napiCli, 'pre-publish', '--skip-optional-publish', '--no-gh-release')

    mkdirSync(folder, { recursive: true })
    return [...targets.map((target) => `./npm/${target}`), '.'].map((place) => {
      const [{ filename }] = pack('--pack-destination', path.resolve(folder), place)
      const manifest = JSON.parse(readFileSync(path.join(stage, place, 'package.json'), 'utf8'))
      return { file: path.resolve(folder, filename), manifest }
    })
  } finally {
    rmSync(stage, { recursive: true, force: true })
  }
}

/** npm's own JavaScript, since on Windows the command is no program. */
export function npmCli() {
  const cli = process.env.npm_execpath
  if (!cli) throw new Error('Run this as an npm script')
  return cli
}

if (import.meta.filename === process.argv[1]) {
  if (process.argv.length !== 3) throw new Error('Name the folder to pack into')
  for (const { file } of packAll(process.argv[2])) console.log(file)
}
