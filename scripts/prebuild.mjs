// npm run build:prebuilt [-- TARGET]: builds artifacts/cugather.<target>.node as it is published, for
// this machine's target or, on Linux, for the other one's.
//
// On Linux by zig's linker, against the oldest glibc that is promised: what is built against a
// distribution's own needs that distribution or a newer one. zig and cargo-zigbuild come from their
// PyPI wheels into target/zig.

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkGlibc, GLIBC } from './check-glibc.mjs'

const WHEELS = ['cargo-zigbuild==0.24.1', 'ziglang==0.17.1']
const TRIPLES = {
  'linux-x64-gnu': 'x86_64-unknown-linux-gnu',
  'linux-arm64-gnu': 'aarch64-unknown-linux-gnu',
  'win32-x64-msvc': 'x86_64-pc-windows-msvc',
  'darwin-arm64': 'aarch64-apple-darwin',
}

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const { platform, arch } = process
const target =
  process.argv[2] ?? Object.keys(TRIPLES).find((name) => name.startsWith(`${platform}-${arch}`))
const triple = TRIPLES[target]
if (!triple) {
  console.error(
    `No such target: ${target ?? `${platform}-${arch}`}. There are: ${Object.keys(TRIPLES).join(', ')}`,
  )
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
