// Builds the stand-in driver into target/stand-in/, where LD_LIBRARY_PATH finds it as libcuda.so, and
// in folders beside it two libraries of that name that are of no use. Needs a C and a C++ compiler:
// cc and c++, or what CC and CXX name.

import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const target = path.join(here, '..', '..', 'target', 'stand-in')
const { CC = 'cc', CXX = 'c++' } = process.env

function build(compiler, source, folder, flags) {
  mkdirSync(folder, { recursive: true })
  const library = path.join(folder, 'libcuda.so')
  const files = ['-o', library, path.join(here, 'driver', source)]
  execFileSync(compiler, [...flags, '-shared', '-fPIC', ...files], { stdio: 'inherit' })
  // The name that a driver's library has; cudarc tries the one without a number first.
  rmSync(path.join(folder, 'libcuda.so.1'), { force: true })
  symlinkSync('libcuda.so', path.join(folder, 'libcuda.so.1'))
}

const warnings = ['-Wall', '-Wextra', '-Werror']
build(CXX, 'driver.cpp', target, [
  ...warnings,
  '-Wno-unknown-pragmas',
  '-std=c++17',
  '-O2',
  '-g',
  '-pthread',
  '-fvisibility=hidden',
  // The kernels read memory by the width that fits, as device code does: no aliasing by type.
  '-fno-strict-aliasing',
])
build(CC, 'stub.c', path.join(target, 'stubs'), warnings)
build(CC, 'lacking.c', path.join(target, 'lacking'), warnings)
