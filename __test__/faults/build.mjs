// Builds the stand-in driver into target/stand-in/, where LD_LIBRARY_PATH finds it as libcuda.so, and
// in folders beside it two libraries of that name that are of no use; and kernel-check. Needs a C and a C++ compiler:
// cc and c++, or what CC and CXX name.

import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const target = path.join(here, '..', '..', 'target', 'stand-in')
const { CC = 'cc', CXX = 'c++' } = process.env

function compile(compiler, source, output, flags) {
  const files = ['-o', output, path.join(here, 'driver', source)]
  execFileSync(compiler, [...flags, ...files], { stdio: 'inherit' })
}

function buildLibrary(compiler, source, folder, flags) {
  mkdirSync(folder, { recursive: true })
  const library = path.join(folder, 'libcuda.so')
  compile(compiler, source, library, [...flags, '-shared', '-fPIC'])
  // The name that a driver's library has; cudarc tries the one without a number first.
  rmSync(path.join(folder, 'libcuda.so.1'), { force: true })
  symlinkSync('libcuda.so', path.join(folder, 'libcuda.so.1'))
}

const warnings = ['-Wall', '-Wextra', '-Werror']
// The kernels read memory by the width that fits, as device code does: no aliasing by type.
const kernels = [...warnings, '-Wno-unknown-pragmas', '-std=c++17', '-g', '-fno-strict-aliasing']
buildLibrary(CXX, 'driver.cpp', target, [...kernels, '-O2', '-pthread', '-fvisibility=hidden'])
buildLibrary(CC, 'stub.c', path.join(target, 'stubs'), warnings)
buildLibrary(CC, 'lacking.c', path.join(target, 'lacking'), warnings)

/** The kernels' own checks, as a program under sanitizers. */
export const kernelCheck = path.join(target, 'kernel-check')
const sanitizers = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all']
compile(CXX, 'kernel_check.cpp', kernelCheck, [...kernels, '-O1', ...sanitizers])
