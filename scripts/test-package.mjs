// npm run test:package: packs what is published and installs it as a user does, into an empty folder,
// with no install script run and no cargo on the PATH; then uses it in every way that needs other
// files than a checkout's own. Last, the ways an install goes wrong, and what the errors say to do.
//
// The platforms' packages come from a registry in this process: npm picks the one that fits.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { npmCli, packAll } from './pack.mjs'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const scratch = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'cugather-package-')))
const { platform, arch } = process
const GATHERED = '30,10,30\n'

const hasCargo = (folder) =>
  existsSync(path.join(folder, 'cargo')) || existsSync(path.join(folder, 'cargo.exe'))
const folders = process.env.PATH.split(path.delimiter)
const withoutCargo = folders.filter((folder) => !hasCargo(folder)).join(path.delimiter)

/** Runs Node, or with `fails` expects it to fail. Resolves to what was printed. */
function node(folder, args, { fails = false, PATH = withoutCargo } = {}) {
  const env = { ...process.env, PATH, CUGATHER_BINDING: '', CUGATHER_DEVICE: 'cpu', CI: '1' }
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: folder, env }, (error, stdout, stderr) => {
      if (Boolean(error) === fails) resolve({ stdout, stderr })
      else
        reject(
          new Error(
            `node ${args.join(' ')}: ${error ? 'failed' : 'did not fail'}\n${stdout}${stderr}`,
          ),
        )
    })
  })
}

const npm = (folder, ...args) => node(folder, [npmCli(), ...args, '--no-audit', '--no-fund'])

async function gathers(folder, ...args) {
  const { stdout, stderr } = await node(folder, args)
  assert.deepEqual({ stdout, stderr }, { stdout: GATHERED, stderr: '' })
}

async function check(name, run) {
  const start = performance.now()
  await run()
  console.log(`ok ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)`)
}

/** What a registry answers, for the packages of the platforms. */
function serve(packages) {
  const server = createServer((request, response) => {
    const asked = decodeURIComponent(request.url.slice(1))
    const tarball = packages.find(({ file }) => path.basename(file) === asked)
    if (tarball) return response.end(readFileSync(tarball.file))
    const found = packages.find(({ manifest }) => manifest.name === asked)
    if (!found) return response.writeHead(404).end('{}')
    const { file, manifest } = found
    const dist = {
      tarball: `http://${request.headers.host}/${path.basename(file)}`,
      integrity: `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`,
    }
    const { name, version } = manifest
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        name,
        'dist-tags': { latest: version },
        versions: { [version]: { ...manifest, dist } },
      }),
    )
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

const packages = packAll(path.join(scratch, 'packed'), { placeholders: true })
const cugather = packages.at(-1)
const ours = packages.find(
  ({ manifest: { os, cpu } }) => os?.includes(platform) && cpu.includes(arch),
)
assert(ours, `No package is for ${platform} ${arch}`)
const server = await serve(packages.slice(0, -1))

/** A new project whose @cugather packages come from here. */
function project(name) {
  const folder = path.join(scratch, name)
  mkdirSync(folder)
  writeFileSync(
    path.join(folder, '.npmrc'),
    `@cugather:registry=http://127.0.0.1:${server.address().port}/\n`,
  )
  writeFileSync(path.join(folder, 'package.json'), '{ "private": true }')
  return folder
}

/** The program of an installed package. */
function program(folder, name, command = name) {
  const manifest = path.join(folder, 'node_modules', name, 'package.json')
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8'))
  return path.join(path.dirname(manifest), typeof bin === 'string' ? bin : bin[command])
}

try {
  await check(
    'nothing in the packages runs on install, and load.js asks for each of them',
    async () => {
      for (const { manifest } of packages) {
        for (const script of ['preinstall', 'install', 'postinstall']) {
          assert.equal(manifest.scripts?.[script], undefined, `${manifest.name} has ${script}`)
        }
        assert(!manifest.gypfile)
      }
      const needed = Object.fromEntries(
        packages.slice(0, -1).map(({ manifest: { name, version } }) => [name, version]),
      )
      assert.deepEqual(cugather.manifest.optionalDependencies, needed)
      assert.equal(cugather.manifest.dependencies, undefined)
      const loader = readFileSync(path.join(root, 'load.js'), 'utf8')
      const asked = [...loader.matchAll(/require\('(@[^']+)'\)/g)].map(([, name]) => name)
      assert.deepEqual(asked.sort(), Object.keys(needed).sort())
      await assert.rejects(
        new Promise((_, reject) => execFile('cargo', { env: { PATH: withoutCargo } }, reject)),
        { code: 'ENOENT' },
      )
    },
  )

  const user = project('user')
  cpSync(path.join(root, '__test__', 'package'), user, { recursive: true })
  await check('npm installs it, with the one package for this platform', async () => {
    await npm(user, 'ci', '--ignore-scripts')
    await npm(user, 'install', '--ignore-scripts', cugather.file)
    assert.deepEqual(readdirSync(path.join(user, 'node_modules', '@cugather')), [
      path.basename(ours.manifest.name),
    ])
    const own = readdirSync(path.join(user, 'node_modules', 'cugather'))
    assert(!own.some((name) => name.endsWith('.node')))
  })
  await check('require', () => gathers(user, 'require.cjs'))
  await check('import', () => gathers(user, 'import.mjs'))
  await check('a worker', () => gathers(user, 'worker.cjs'))
  await check('its program: doctor, and bench with a chart', async () => {
    const cli = program(user, 'cugather')
    const { stdout: found } = await node(user, [cli, 'doctor', '--json'])
    assert.equal(JSON.parse(found).checks.cpu, 'right')
    const sizes = ['--source-length', '100000', '--index-length', '1000']
    const { stdout: times } = await node(user, [
      cli,
      'bench',
      '--json',
      ...sizes,
      '--svg',
      'out.svg',
    ])
    assert(JSON.parse(times).series['cugather, cpu'])
    const chart = readFileSync(path.join(user, 'out.svg'), 'utf8')
    assert.match(chart, /^<svg[\s\S]*cugather, cpu/)
  })
  // The same program as CommonJS and as an ES module, where the compiler tells them apart.
  for (const file of ['types.cts', 'types.mts']) {
    cpSync(path.join(user, 'types.ts'), path.join(user, file))
  }
  for (const [module, moduleResolution, files] of [
    ['node16', 'node16', ['types.cts', 'types.mts']],
    ['esnext', 'bundler', ['types.ts']],
  ]) {
    await check(`types, moduleResolution ${moduleResolution}`, () =>
      node(user, [
        program(user, 'typescript', 'tsc'),
        ...['--strict', '--noEmit', '--skipLibCheck', 'false', '--types', 'node'],
        ...['--target', 'es2022', '--lib', 'es2023', '--module', module],
        ...['--moduleResolution', moduleResolution, ...files],
      ]),
    )
  }
  await check('publint', () =>
    node(user, [
      program(user, 'publint'),
      'run',
      'node_modules/cugather',
      '--strict',
      '--pack',
      'false',
    ]),
  )
  await check('Jest', async () => {
    const { stderr } = await node(user, [program(user, 'jest'), '--ci'])
    assert.match(stderr, /1 passed, 1 total/)
  })
  for (const external of ['cugather', '@cugather/*']) {
    await check(`a bundle by esbuild, but for ${external}`, async () => {
      const outfile = 'bundle/index.cjs'
      await node(user, [
        program(user, 'esbuild'),
        ...['require.cjs', '--bundle', '--platform=node', `--external:${external}`],
        `--outfile=${outfile}`,
      ])
      assert.match(
        readFileSync(path.join(user, outfile), 'utf8'),
        external === 'cugather' ? /require\("cugather"\)/ : /require\("@cugather\/binding-/,
      )
      await gathers(user, outfile)
    })
  }
  await check('pnpm installs it', async () => {
    const folder = project('pnpm')
    cpSync(path.join(user, 'require.cjs'), path.join(folder, 'require.cjs'))
    await node(folder, [program(user, 'pnpm'), 'add', cugather.file])
    await gathers(folder, 'require.cjs')
  })

  const broken = project('broken')
  const code =
    "require('cugather').cudaGather(Float32Array.of(10, 20, 30), Int32Array.of(2, 0, -1)).then((result) => console.log(String(result)))"
  const says = async (...parts) => {
    const { stderr } = await node(broken, ['-e', code], { fails: true })
    for (const part of parts) assert(stderr.includes(part), `${part} in:\n${stderr}`)
  }
  await check('node_modules of another system: the error and its remedy', async () => {
    const [system, machine] = platform === 'darwin' ? ['linux', 'arm64'] : ['darwin', 'arm64']
    await npm(
      broken,
      'install',
      '--ignore-scripts',
      `--os=${system}`,
      `--cpu=${machine}`,
      cugather.file,
    )
    await says(
      'ERR_CUGATHER_BINDING_NOT_FOUND',
      `@cugather/binding-${system}-${machine}`,
      'comes from another system',
      'Delete node_modules and run: npm install',
    )
    rmSync(path.join(broken, 'node_modules'), { recursive: true })
    await npm(broken, 'install', '--ignore-scripts')
    await gathers(broken, '-e', code)
  })
  await check('--omit=optional: the error and its remedy', async () => {
    rmSync(path.join(broken, 'node_modules'), { recursive: true })
    await npm(broken, 'install', '--ignore-scripts', '--omit=optional')
    await says('ERR_CUGATHER_BINDING_NOT_FOUND', 'Run: npm install --include=optional')
    await npm(broken, 'install', '--ignore-scripts', '--include=optional')
    await gathers(broken, '-e', code)
  })
  await check('built from the sources in the package, with cargo alone', async () => {
    const folder = project('sources')
    // Somebody's workspace of Rust crates around it is none of its own.
    writeFileSync(path.join(folder, 'Cargo.toml'), '[workspace]\n')
    await npm(folder, 'install', '--ignore-scripts', '--omit=optional', cugather.file)
    const build = path.join('node_modules', 'cugather', 'build.js')
    const { stderr } = await node(folder, [build], { fails: true })
    assert.match(stderr, /^cargo is not on the PATH: install Rust from/)
    await node(folder, [build], { PATH: process.env.PATH })
    await gathers(folder, '-e', code)
  })
} finally {
  server.close()
  rmSync(scratch, { recursive: true, force: true })
}
