// What load.js says where there is no addon that works: each case in a project of its own, with
// platform packages made for it, in a process of its own.

const { execFile } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')

const root = path.join(__dirname, '..')
const manifest = require('../package.json')

const { version } = manifest
const targets = ['linux-x64-gnu', 'linux-arm64-gnu', 'win32-x64-msvc', 'darwin-arm64']
// Whatever this checkout's own is called.
const addon = fs.readFileSync(
  process.env.CUGATHER_BINDING ??
    path.join(
      root,
      fs.readdirSync(root).find((name) => name.endsWith('.node')),
    ),
)
const onLinuxX64 = process.platform === 'linux' && process.arch === 'x64' ? test : test.skip

/** A project with cugather in its node_modules, and addons (bytes) by the name of their target. */
function project(t, packages = {}, { packageVersion = version, isPublished = true } = {}) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'cugather-loader-')))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const write = (file, data) => {
    const place = path.join(folder, 'node_modules', file)
    fs.mkdirSync(path.dirname(place), { recursive: true })
    fs.writeFileSync(place, data)
    return place
  }
  for (const file of ['load.js', 'index.js']) {
    write(`cugather/${file}`, fs.readFileSync(path.join(root, file)))
  }
  const needed = targets.map((target) => [`@cugather/binding-${target}`, version])
  const optionalDependencies = isPublished ? Object.fromEntries(needed) : undefined
  write('cugather/package.json', JSON.stringify({ ...manifest, optionalDependencies }))
  for (const [target, bytes] of Object.entries(packages)) {
    const name = `@cugather/binding-${target}`
    const main = `cugather.${target}.node`
    write(`${name}/package.json`, JSON.stringify({ name, version: packageVersion, main }))
    if (bytes) write(`${name}/${main}`, bytes)
  }
  return { folder, write, inside: (file) => path.join(folder, 'node_modules', file) }
}

const on = (platform, arch) =>
  `Object.defineProperties(process, { platform: { value: '${platform}' }, arch: { value: '${arch}' } })`
const withMusl = `const { report } = process
  Object.defineProperty(process, 'report', { value: { getReport: () => ({ header: {} }) } })`

/** Runs code, then requires cugather there: resolves to what that throws, or to a gather's result. */
function load(folder, { before = '', env = {} } = {}) {
  const code = `${before}
    let outcome
    try {
      const { cudaGather } = require('cugather')
      cudaGather(Float32Array.of(1, 2), Int32Array.of(1, 0), { device: 'cpu' }).then(print)
    } catch ({ code, message, cause }) {
      print({ code, message, cause: cause && { code: cause.code, message: cause.message } })
    }
    function print(value) { console.log(JSON.stringify(value)) }`
  return new Promise((resolve, reject) => {
    const options = { cwd: folder, env: { ...process.env, CUGATHER_BINDING: '', ...env } }
    execFile(process.execPath, ['-e', code], options, (error, stdout, stderr) =>
      error || stderr ? reject(error ?? new Error(stderr)) : resolve(JSON.parse(stdout)),
    )
  })
}

const gathered = { 0: 2, 1: 1 }

function says(t, error, code, ...parts) {
  t.is(error.code, code, error.message)
  t.true(error.message.startsWith('cugather has no native addon that works here ('), error.message)
  for (const part of parts) t.true(error.message.includes(part), `${part} in:\n${error.message}`)
  if (error.cause) t.true(error.message.includes(error.cause.message.split('\n')[0]))
}

onLinuxX64('the platform package is loaded', async (t) => {
  t.deepEqual(await load(project(t, { 'linux-x64-gnu': addon }).folder), gathered)
})

test('an addon built beside load.js goes before the package', async (t) => {
  const { folder, write } = project(t, { 'linux-x64-gnu': 'not read' })
  write(`cugather/cugather.${process.platform}-${process.arch}.node`, addon)
  t.deepEqual(await load(folder), gathered)
})

test('CUGATHER_BINDING names another, and a wrong one is named', async (t) => {
  const { folder, write, inside } = project(t)
  const file = write('elsewhere.node', addon)
  t.deepEqual(await load(folder, { env: { CUGATHER_BINDING: file } }), gathered)
  const relative = path.join('node_modules', 'no.node')
  says(
    t,
    await load(folder, { env: { CUGATHER_BINDING: relative } }),
    'ERR_CUGATHER_BINDING_NOT_FOUND',
    `There is no ${inside('no.node')}.`,
    'Change or unset CUGATHER_BINDING',
  )
})

test('a platform without a prebuilt: which there are, and how to build one', async (t) => {
  const { folder, inside } = project(t)
  for (const [platform, arch] of [
    ['freebsd', 'x64'],
    ['linux', 'riscv64'],
    ['darwin', 'x64'],
  ]) {
    const error = await load(folder, { before: on(platform, arch) })
    says(
      t,
      error,
      'ERR_CUGATHER_UNSUPPORTED_PLATFORM',
      `(${platform} ${arch}, `,
      'Prebuilt ones are for linux-x64-gnu, linux-arm64-gnu, win32-x64-msvc, darwin-arm64; Linux needs glibc 2.17 or newer.',
      `Build it from the sources in the package, with Rust from https://rustup.rs: node ${inside('cugather/build.js')}`,
    )
    t.is(error.cause, undefined)
  }
})

test('musl, without the package and with one forced in', async (t) => {
  const bare = await load(project(t).folder, { before: `${on('linux', 'x64')}; ${withMusl}` })
  says(t, bare, 'ERR_CUGATHER_UNSUPPORTED_PLATFORM', 'linux x64, musl, ', 'glibc 2.17', 'build.js')
  if (process.platform !== 'linux') return
  const { folder } = project(t, { [`linux-${process.arch}-gnu`]: unloadable() })
  const forced = await load(folder, { before: withMusl })
  says(t, forced, 'ERR_CUGATHER_UNSUPPORTED_PLATFORM', ', musl, ', 'may need glibc', 'build.js')
  t.is(forced.cause.code, 'ERR_DLOPEN_FAILED')
})

test('optional dependencies that were left out', async (t) => {
  const { folder } = project(t)
  for (const lock of [undefined, '"node_modules/@cugather/binding-linux-x64-gnu": {}']) {
    if (lock) fs.writeFileSync(path.join(folder, 'package-lock.json'), lock)
    says(
      t,
      await load(folder, { before: on('linux', 'x64') }),
      'ERR_CUGATHER_BINDING_NOT_FOUND',
      '@cugather/binding-linux-x64-gnu is not installed: optional dependencies were left out (--omit=optional, ',
      'Run: npm install --include=optional',
      "Cannot find module '@cugather/binding-linux-x64-gnu'",
    )
  }
})

test('a copy that was packed from a checkout', async (t) => {
  const { folder, inside } = project(t, {}, { isPublished: false })
  says(
    t,
    await load(folder, { before: on('linux', 'x64') }),
    'ERR_CUGATHER_BINDING_NOT_FOUND',
    'This copy was packed from a checkout',
    `Build it, with Rust from https://rustup.rs: node ${inside('cugather/build.js')}`,
  )
})

test("a lock file that lacks this platform's package", async (t) => {
  const { folder } = project(t)
  const lock = path.join(folder, 'package-lock.json')
  fs.writeFileSync(lock, '{ "packages": { "node_modules/@cugather/binding-darwin-arm64": {} } }')
  says(
    t,
    await load(folder, { before: on('linux', 'x64') }),
    'ERR_CUGATHER_BINDING_NOT_FOUND',
    `@cugather/binding-linux-x64-gnu is not installed, and ${lock} doesn't list it`,
    'Delete node_modules and package-lock.json and run: npm install',
  )
})

test('node_modules copied from another system', async (t) => {
  says(
    t,
    await load(project(t, { 'darwin-arm64': 'macOS' }).folder, { before: on('linux', 'x64') }),
    'ERR_CUGATHER_BINDING_NOT_FOUND',
    '@cugather/binding-linux-x64-gnu is not installed, but @cugather/binding-darwin-arm64 is: node_modules comes from another system.',
    'Delete node_modules and run: npm install\nFor a container, list node_modules in .dockerignore.',
  )
})

onLinuxX64("another system's file under this one's name", async (t) => {
  const elf = Buffer.from(addon.subarray(0, 4096))
  elf.writeUInt16LE(183, 18)
  const machO = Buffer.alloc(4096)
  machO.writeUInt32BE(0xcffaedfe)
  machO.writeUInt32LE(0x100000c, 4)
  const windows = Buffer.alloc(4096)
  windows.write('MZ')
  windows.writeUInt32LE(128, 60)
  windows.write('PE', 128)
  windows.writeUInt16LE(0x8664, 132)
  for (const [bytes, kind] of [
    [elf, 'linux arm64'],
    [machO, 'darwin arm64'],
    [windows, 'win32 x64'],
  ]) {
    const { folder, inside } = project(t, { 'linux-x64-gnu': bytes })
    const file = inside('@cugather/binding-linux-x64-gnu/cugather.linux-x64-gnu.node')
    const error = await load(folder)
    says(
      t,
      error,
      'ERR_CUGATHER_BINDING_BROKEN',
      `${file} is one for ${kind}: it comes from another system.`,
      'Delete node_modules and run: npm install',
    )
    t.is(error.cause.code, 'ERR_DLOPEN_FAILED')
  }
})

onLinuxX64('a glibc that is too old, by the real error of dlopen', async (t) => {
  // The name of a version that the addon needs becomes one that no glibc has.
  const bytes = Buffer.from(addon)
  const name = 'GLIBC_2.14\0'
  for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name))
    bytes.write('GLIBC_9.99', at)
  t.true(bytes.includes('GLIBC_9.99'))
  const { folder, inside } = project(t, { 'linux-x64-gnu': bytes })
  const error = await load(folder)
  says(
    t,
    error,
    'ERR_CUGATHER_UNSUPPORTED_PLATFORM',
    'linux x64, glibc 2.',
    '.node needs GLIBC_9.99.',
    `node ${inside('cugather/build.js')}`,
  )
  t.is(error.cause.code, 'ERR_DLOPEN_FAILED')
})

/** This platform's by its head, but dlopen refuses it. One cut short ends a process by SIGBUS. */
function unloadable() {
  const bytes = Buffer.from(addon)
  bytes.writeUInt16LE(0, 54) // e_phentsize
  return bytes
}

onLinuxX64('an addon that is broken, gone, or of another version', async (t) => {
  const reinstall = 'Delete node_modules and run: npm install'
  for (const [bytes, found] of [
    [
      Buffer.from('version https://git-lfs.github.com/spec/v1\n'.repeat(3)),
      'no native addon, or not a whole one',
    ],
    [Buffer.alloc(0), 'no native addon, or not a whole one'],
    [unloadable(), "can't be loaded"],
  ]) {
    const error = await load(project(t, { 'linux-x64-gnu': bytes }).folder)
    says(t, error, 'ERR_CUGATHER_BINDING_BROKEN', found, reinstall)
    t.is(error.cause.code, 'ERR_DLOPEN_FAILED')
  }
  says(
    t,
    await load(project(t, { 'linux-x64-gnu': undefined }).folder),
    'ERR_CUGATHER_BINDING_BROKEN',
    '@cugather/binding-linux-x64-gnu is installed, but its addon is missing.',
    reinstall,
  )
  says(
    t,
    await load(project(t, { 'linux-x64-gnu': addon }, { packageVersion: '0.0.9' }).folder),
    'ERR_CUGATHER_BINDING_BROKEN',
    `@cugather/binding-linux-x64-gnu is version 0.0.9, and cugather is ${version}.`,
    reinstall,
  )
})

test('one built here that is broken says how to build it again', async (t) => {
  const { folder, write, inside } = project(t)
  write(`cugather/cugather.${process.platform}-${process.arch}.node`, 'x'.repeat(100))
  says(
    t,
    await load(folder),
    'ERR_CUGATHER_BINDING_BROKEN',
    'no native addon, or not a whole one',
    `Build it again: node ${inside('cugather/build.js')}`,
  )
})

test('a checkout that is not built', async (t) => {
  const { folder, inside } = project(t)
  fs.renameSync(inside('cugather'), path.join(folder, 'checkout'))
  fs.symlinkSync(path.join(folder, 'checkout'), inside('cugather'), 'junction')
  says(
    t,
    await load(folder, { before: on('linux', 'x64') }),
    'ERR_CUGATHER_BINDING_NOT_FOUND',
    'This checkout is not built.',
    `Build it: npm install, in ${path.join(folder, 'checkout')}`,
  )
})

test('no name outside the scope is asked for on any platform, and no process is started', async (t) => {
  const { folder } = project(t)
  const before = `
    const Module = require('node:module')
    const { _load } = Module
    const asked = new Set()
    Module._load = function (request) { asked.add(request); return _load.apply(this, arguments) }
    const { _resolveFilename } = Module
    Module._resolveFilename = function (request) { asked.add(request); return _resolveFilename.apply(this, arguments) }
    const print_ = (value) => console.log(JSON.stringify(value))
    for (const platform of ['aix','android','darwin','freebsd','linux','openbsd','sunos','win32','openharmony']) {
      for (const arch of ['arm','arm64','ia32','loong64','mips','mipsel','ppc64','riscv64','s390x','x64']) {
        Object.defineProperties(process, { platform: { value: platform }, arch: { value: arch } })
        for (const file of Object.keys(require.cache)) delete require.cache[file]
        try { require('cugather'); asked.add('loaded') } catch {}
      }
    }
    print_([...asked])
    process.exit()`
  const asked = await load(folder, { before })
  t.true(asked.includes('@cugather/binding-win32-x64-msvc'))
  const strange = asked.filter(
    (name) =>
      !/^(cugather|node:(buffer|diagnostics_channel|events|fs|path|module|util\/types|worker_threads)|\.\/(load\.js|package\.json)|@cugather\/binding-.*)$/.test(
        name,
      ),
  )
  t.deepEqual(strange, [])
})
