// npm run build:prebuilt [-- TARGET]: builds artifacts/cugather.<target>.node as it is published, for
// this machine's target or, on Linux, for the other one's.
//
// On Linux by zig's linker, against the oldest glibc that is promised: what is built against a
// distribution's own needs that distribution or a newer one. zig and cargo-zigbuild come from their
// PyPI wheels into target/zig.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseTriple } from '@napi-rs/cli'
import { checkGlibc, GLIBC } from './check-glibc.mjs'

const WHEELS = ['cargo-zigbuild==0.24.1', 'ziglang==0.17.1']

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const { napi: config } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
const targets = config.targets.map(parseTriple)
const asked = process.argv[2] ?? `${process.platform}-${process.arch}`
const { platformArchABI: target, triple } =
  targets.find(({ platform, arch, platformArchABI }) =>
    [platformArchABI, `${platform}-${arch}`].includes(asked),
  ) ?? {}
if (!triple) {
  const names = targets.map(({ platformArchABI }) => platformArchABI)
  console.error(`No such target: ${asked}. There are: ${names.join(', ')}`)
  process.exit(1)
}

const run = (command, args, env = {}) =>
  execFileSync(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } })

const args = ['--platform', '--release', '--no-js', '--output-dir', 'artifacts']
const napi = [path.join('node_modules', '@napi-rs', 'cli', 'dist', 'cli.js'), 'build', ...args]

if (target.startsWith('linux')) {
  const tools = path.join(root, 'target', 'zig')
  if (!existsSync(tools)) {
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
    run('python3', [...pip, '--root-user-action=ignore', '--target', tools, ...WHEELS])
  }
  // An older tool of the same name elsewhere on the machine is not taken.
  const env = {
    PATH: [path.join(tools, 'bin'), process.env.PATH].join(path.delimiter),
    PYTHONPATH: tools,
    CARGO_ZIGBUILD_PYTHON_PATH: 'python3',
  }
  run(process.execPath, [...napi, '--cross-compile', '--target', `${triple}.${GLIBC}`], env)
  checkGlibc(path.join('artifacts', `cugather.${target}.node`))
} else {
  // On Windows the C runtime goes in: not every machine has its DLL.
  const env = { CARGO_TARGET_X86_64_PC_WINDOWS_MSVC_RUSTFLAGS: '-Ctarget-feature=+crt-static' }
  run(process.execPath, [...napi, '--target', triple], env)
}
