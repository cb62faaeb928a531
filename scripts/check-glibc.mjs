// node scripts/check-glibc.mjs FILE...: fails where an addon needs a newer glibc than is promised, or
// a library that not every Linux with glibc has. Needs readelf.

import { execFileSync } from 'node:child_process'

/** The oldest glibc that the prebuilt packages are for. load.js says it too. */
export const GLIBC = '2.17'

// All of glibc itself. Nothing of CUDA: its driver is looked for when a gather first asks.
const libraries = /^(lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux-[\w-]+\.so\.\d)$/

const newer = (a, b) => a.localeCompare(b, 'en', { numeric: true }) > 0

export function checkGlibc(file) {
  const options = { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } }
  const output = execFileSync('readelf', ['--wide', '--dynamic', '--version-info', file], options)
  const needed = [...output.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name)
  const versions = [...output.matchAll(/Name: GLIBC_([\d.]+)/g)].map(([, version]) => version)
  if (needed.length === 0 || versions.length === 0) throw new Error(`${file}: readelf says nothing`)
  const strange = needed.filter((name) => !libraries.test(name))
  if (strange.length > 0) throw new Error(`${file} needs ${strange.join(' and ')}`)
  const newest = versions.reduce((a, b) => (newer(b, a) ? b : a))
  if (newer(newest, GLIBC)) {
    throw new Error(`${file} needs glibc ${newest}; ${GLIBC} is what is promised`)
  }
  console.log(`${file} needs glibc ${newest}, of at most ${GLIBC}, and ${needed.join(', ')}`)
}

if (import.meta.filename === process.argv[1]) {
  for (const file of process.argv.slice(2)) checkGlibc(file)
}
