'use strict'

// Finds and loads the native addon: one built beside this file, or the package for this platform.
// Where that fails, the error says what was found and what mends it. No other name is ever asked
// for, and no process is started.

const fs = require('node:fs')
const path = require('node:path')
const { version, optionalDependencies } = require('./package.json')

const { platform, arch } = process
const scope = '@cugather/binding'
const prebuilt = ['linux-x64-gnu', 'linux-arm64-gnu', 'win32-x64-msvc', 'darwin-arm64']
const builder = path.join(__dirname, 'build.js')

// The names are written out, inside a try, for what traces or bundles a program's files.
function requirePackage(target) {
  try {
    switch (target) {
      case 'linux-x64-gnu':
        return require('@cugather/binding-linux-x64-gnu')
      case 'linux-arm64-gnu':
        return require('@cugather/binding-linux-arm64-gnu')
      case 'win32-x64-msvc':
        return require('@cugather/binding-win32-x64-msvc')
      case 'darwin-arm64':
        return require('@cugather/binding-darwin-arm64')
    }
  } catch (cause) {
    const name = `${scope}-${target}`
    if (!resolved(`${name}/package.json`)) throw notInstalled(name, cause)
    const file = resolved(name)
    if (!file) throw broken(`${name} is installed, but its addon is missing.`, reinstall, cause)
    throw cantLoad(file, reinstall, cause)
  }
}

function load() {
  const named = process.env.CUGATHER_BINDING
  if (named) {
    return requireFile(path.resolve(named), 'Change or unset CUGATHER_BINDING, which names it.')
  }

  // What is built here goes first: whoever built it wants it. Its name ends in the ABI or in none.
  const own = new RegExp(`^cugather\\.${platform}-${arch}(-\\w+)?\\.node$`)
  const built = fs.readdirSync(__dirname).find((name) => own.test(name))
  if (built) return requireFile(path.join(__dirname, built), `Build it again: node ${builder}`)

  // The GNU one on any Linux: where it can't be loaded, the error tells which libc there is.
  const target = prebuilt.find((name) => name.startsWith(`${platform}-${arch}`))
  if (!target) throw unsupported()
  const binding = requirePackage(target)
  const found = require(`${scope}-${target}/package.json`).version
  if (found === version) return binding
  throw broken(`${scope}-${target} is version ${found}, and cugather is ${version}.`, reinstall)
}

function requireFile(file, mend) {
  try {
    return require(file)
  } catch (cause) {
    throw cantLoad(file, mend, cause)
  }
}

// From here on: only where loading has failed.

const reinstall = 'Delete node_modules and run: npm install'
const elsewhere = `${reinstall}\nFor a container, list node_modules in .dockerignore.`

function failure(code, found, mend, cause) {
  // Not every dlopen names the file, and the real error has to be seen where only a message is.
  const reason = cause ? `\nThe error was: ${cause.message.split('\nRequire stack:')[0]}` : ''
  const error = new Error(
    `cugather has no native addon that works here (${here()}). ${found}\n${mend}${reason}`,
    cause && { cause },
  )
  error.code = code
  return error
}

const broken = (found, mend, cause) => failure('ERR_CUGATHER_BINDING_BROKEN', found, mend, cause)

const missing = (found, mend, cause) =>
  failure('ERR_CUGATHER_BINDING_NOT_FOUND', found, mend, cause)

const unsupported = (
  found = `Prebuilt ones are for ${prebuilt.join(', ')}; Linux needs glibc 2.17 or newer.`,
  cause,
) =>
  failure(
    'ERR_CUGATHER_UNSUPPORTED_PLATFORM',
    found,
    `Build it from the sources in the package, with Rust from https://rustup.rs: node ${builder}`,
    cause,
  )

function notInstalled(name, cause) {
  if (!project()) {
    return missing('This checkout is not built.', `Build it: npm install, in ${__dirname}`, cause)
  }
  if (libc() === 'musl') return unsupported(undefined, cause)
  if (!optionalDependencies?.[name]) {
    return missing(
      'This copy was packed from a checkout, not published: prebuilt addons are no part of it.',
      `Build it, with Rust from https://rustup.rs: node ${builder}`,
      cause,
    )
  }
  const others = prebuilt.map((target) => `${scope}-${target}`).filter((other) => other !== name)
  const other = others.find((other) => resolved(`${other}/package.json`))
  if (other) {
    return missing(
      `${name} is not installed, but ${other} is: node_modules comes from another system.`,
      elsewhere,
      cause,
    )
  }
  const lock = lockWithout(name)
  if (lock) {
    return missing(
      `${name} is not installed, and ${lock} doesn't list it: npm leaves other systems' packages out of a lock file that it makes beside an existing node_modules.`,
      'Delete node_modules and package-lock.json and run: npm install',
      cause,
    )
  }
  return missing(
    `${name} is not installed: optional dependencies were left out (--omit=optional, or the same in .npmrc).`,
    'Run: npm install --include=optional',
    cause,
  )
}

function cantLoad(file, mend, cause) {
  const kind = kindOf(file)
  if (kind === 'missing') return missing(`There is no ${file}.`, mend, cause)
  if (kind === 'damaged')
    return broken(`${file} is no native addon, or not a whole one.`, mend, cause)
  if (kind !== `${platform} ${arch}`) {
    return broken(`${file} is one for ${kind}: it comes from another system.`, elsewhere, cause)
  }
  const glibc = /version [`'](GLIBC_[\d.]+)' not found/.exec(cause.message)
  if (glibc) return unsupported(`${file} needs ${glibc[1]}.`, cause)
  if (libc() === 'musl') return unsupported(`${file} may need glibc.`, cause)
  return broken(`${file} can't be loaded.`, mend, cause)
}

/** The file behind a name, if there is one. */
function resolved(name) {
  try {
    return require.resolve(name)
  } catch {
    return undefined
  }
}

/** The folder of the project that cugather is installed in, if it is. */
function project() {
  const inside = __dirname.indexOf(`${path.sep}node_modules${path.sep}`)
  return inside < 0 ? undefined : __dirname.slice(0, inside)
}

/** The project's package-lock.json, where there is one and it has no such package. */
function lockWithout(name) {
  const lock = path.join(project(), 'package-lock.json')
  try {
    return fs.readFileSync(lock, 'utf8').includes(`node_modules/${name}"`) ? undefined : lock
  } catch {
    return undefined
  }
}

/** What an addon's first bytes say it is for, as `platform arch`. */
function kindOf(file) {
  let head
  try {
    head = fs.readFileSync(file).subarray(0, 1024)
  } catch {
    return 'missing'
  }
  if (head.length < 64) return 'damaged'
  switch (head.readUInt32BE(0)) {
    case 0x7f454c46: // ELF, which doesn't say for which of its systems.
      return `${platform === 'darwin' || platform === 'win32' ? 'linux' : platform} ${
        { 40: 'arm', 62: 'x64', 183: 'arm64', 243: 'riscv64' }[head.readUInt16LE(18)] ?? arch
      }`
    case 0xcffaedfe: // Mach-O.
      return `darwin ${{ 16777223: 'x64', 16777228: 'arm64' }[head.readUInt32LE(4)] ?? arch}`
  }
  const header = head.readUInt32LE(60)
  if (head.toString('latin1', 0, 2) !== 'MZ' || header > head.length - 6) return 'damaged'
  return `win32 ${{ 332: 'ia32', 34404: 'x64', 43620: 'arm64' }[head.readUInt16LE(header + 4)] ?? arch}`
}

/** On Linux, `musl` or glibc and its version. */
function libc() {
  if (platform !== 'linux' || !process.report) return undefined
  const { excludeNetwork } = process.report
  // Or it looks up the name of every peer.
  process.report.excludeNetwork = true
  const { header } = process.report.getReport()
  process.report.excludeNetwork = excludeNetwork
  return header.glibcVersionRuntime ? `glibc ${header.glibcVersionRuntime}` : 'musl'
}

function here() {
  return [`${platform} ${arch}`, libc(), `Node ${process.versions.node}`].filter(Boolean).join(', ')
}

module.exports = load()
