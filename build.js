'use strict'

// node build.js, in an installed package too: builds the native addon beside load.js, for platforms
// that have no prebuilt one. Needs Rust's cargo and nothing else.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const { platform, arch } = process
const addon = path.join(__dirname, `cugather.${platform}-${arch}.node`)
const library = { win32: 'cugather.dll', darwin: 'libcugather.dylib' }[platform] ?? 'libcugather.so'
// Not in the package: what cargo leaves there is a hundred times what is kept.
const target = fs.mkdtempSync(path.join(os.tmpdir(), 'cugather-build-'))

try {
  const args = ['build', '--release', '--locked', '--lib', '--target-dir', target]
  // With musl, Rust makes no shared libraries unless it is told to.
  args.push(
    '--config',
    'target.\'cfg(target_env = "musl")\'.rustflags = "-Ctarget-feature=-crt-static"',
  )
  const { CARGO_BUILD_TARGET, ...env } = process.env
  const { error, status } = spawnSync('cargo', args, { cwd: __dirname, env, stdio: 'inherit' })
  if (error?.code === 'ENOENT') {
    console.error(
      'cargo is not on the PATH: install Rust from https://rustup.rs and run this again.',
    )
  } else if (error) {
    console.error(error.message)
  }
  if (status === 0) {
    // Under a new name first: a running process may have the old file mapped.
    const fresh = `${addon}.new`
    fs.copyFileSync(path.join(target, 'release', library), fresh)
    fs.renameSync(fresh, addon)
    require('./load.js')
    console.log(`built ${addon}`)
  } else {
    process.exitCode = status || 1
  }
} finally {
  fs.rmSync(target, { recursive: true, force: true })
}
