// Builds the stand-in driver into target/stand-in/, where LD_LIBRARY_PATH finds it as libcuda.so.
// Needs a C++ compiler: c++, or what CXX names.

import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const folder = path.join(here, '..', '..', 'target', 'stand-in')

mkdirSync(folder, { recursive: true })
// The kernels read memory by the width that fits, as device code does: no aliasing by type.
const warnings = ['-Wall', '-Wextra', '-Werror', '-Wno-unknown-pragmas']
const flags = ['-std=c++17', '-O2', '-g', '-fno-strict-aliasing', ...warnings]
const library = path.join(folder, 'libcuda.so')
const source = path.join(here, 'driver', 'driver.cpp')
const cxx = process.env.CXX ?? 'c++'
const shared = ['-shared', '-fPIC', '-fvisibility=hidden', '-o', library, source, '-pthread']
execFileSync(cxx, [...flags, ...shared], { stdio: 'inherit' })
// The name that a driver's library has; cudarc tries the one without a number first.
rmSync(path.join(folder, 'libcuda.so.1'), { force: true })
symlinkSync('libcuda.so', path.join(folder, 'libcuda.so.1'))
console.log(`stand-in driver: ${path.relative(process.cwd(), library)}`)
