// Sizes past 2^31 elements and past 4 GiB: npm run test:large. Takes up to 20 GiB of memory and
// minutes, so it is no part of npm test. On the devices of helpers/machine.js.

const assert = require('node:assert/strict')
const { cudaGather } = require('../index.js')
const { devices } = require('./helpers/machine.js')

// A prime, so that neighbours 2^31 or 2^32 bytes apart differ.
const PERIOD = 65_521
const GIB = 2 ** 30

/** The byte at `i` of every array here. */
const byteAt = (i) => ((i % PERIOD) * 31) % 251

// Node 20 makes no Uint8Array past 4 GiB, so larger arrays are seen through windows of this size.
const WINDOW = PERIOD * 1024

/** An array of `length` elements whose bytes are those of `byteAt`. */
function patterned(Class, length) {
  const array = new Class(length)
  const pattern = Uint8Array.from({ length: PERIOD }, (_, i) => byteAt(i))
  const window = new Uint8Array(Math.min(WINDOW, array.byteLength))
  for (let at = 0; at < window.length; at += PERIOD) {
    window.set(pattern.subarray(0, window.length - at), at)
  }
  for (let at = 0; at < array.byteLength; at += WINDOW) {
    const rest = Math.min(WINDOW, array.byteLength - at)
    new Uint8Array(array.buffer, at, rest).set(window.subarray(0, rest))
  }
  return array
}

/** An array of `length` indices: the first few given, the rest in turn. */
function cycling(Class, length, values) {
  const index = new Class(length)
  for (let i = 0; i < Math.min(values.length, length); i++) index[i] = values[i]
  for (let done = values.length; done < length; done *= 2) index.copyWithin(done, 0, done)
  return index
}

/** Compares first, last and 10,000 other rows with what the pattern says. */
function check(result, source, index, rowLength) {
  assert.equal(result.length, index.length * rowLength)
  const rowBytes = rowLength * source.BYTES_PER_ELEMENT
  const rows = source.length / rowLength
  const bytes = result.byteLength
  const got = (at) => new Uint8Array(result.buffer, at, 1)[0]
  let random = 20261201
  const next = (below) => {
    random = (random * 48_271) % 2_147_483_647
    return Math.floor((random / 2_147_483_647) * below)
  }
  const compare = (at) => {
    const i = Math.floor(at / rowBytes)
    const named = Number(index[i])
    const row = named < 0 ? named + rows : named
    assert.equal(got(at), byteAt(row * rowBytes + (at % rowBytes)), `byte ${at} of the result`)
  }
  for (let at = 0; at < Math.min(256, bytes); at++) compare(at)
  for (let at = Math.max(0, bytes - 256); at < bytes; at++) compare(at)
  for (let k = 0; k < 10_000; k++) compare(next(bytes))
  // Around the places where a 32-bit count, signed or not, would wrap.
  for (const edge of [2 ** 31, 2 ** 32]) {
    for (let at = edge - 64; at < edge + 64 && at < bytes; at++) compare(at)
  }
}

const cases = {
  'a source past 2^31 elements': () => {
    const rows = 2 ** 31 + 11
    return { source: patterned(Uint8Array, rows), index: edges(rows, 1_000_000) }
  },
  'a source past 4 GiB': () => {
    const rows = 1_100_000_007
    return { source: patterned(Float32Array, rows), index: edges(rows, 1_000_000) }
  },
  '1,200,000,000 indices into 3 rows': () => ({
    source: patterned(Uint8Array, 3),
    index: cycling(Uint8Array, 1_200_000_000, [2, 0, 1, 1, 0, 2, 2]),
  }),
  '2^31 + 5 indices into 3 rows': () => ({
    source: patterned(Uint8Array, 3),
    index: cycling(Int8Array, 2 ** 31 + 5, [-1, 0, 1, -2, -3, 2, 2]),
  }),
  'a result past 4 GiB': () => ({
    source: patterned(Float64Array, 1000),
    index: cycling(Int16Array, 540_000_001, [999, 0, -1, -1000, 77, 500, -3]),
  }),
  'rows of 70,000,000 elements, a result past 4 GiB': () => ({
    source: patterned(Uint16Array, 140_000_000),
    index: cycling(Int32Array, 31, [1, 0, -1, -2]),
    rowLength: 70_000_000,
  }),
  'rows of 70,000,000 float32': () => ({
    source: patterned(Float32Array, 140_000_000),
    index: Int32Array.of(1, 0, -1),
    rowLength: 70_000_000,
  }),
}
for (const rows of [65_535, 65_536, 1_000_003]) {
  for (const [Class, rowLength] of [
    [Float32Array, 1],
    [Float32Array, 4],
    [Float32Array, 300],
    [Uint8Array, 33],
    [Uint16Array, 7],
    [BigInt64Array, 5],
  ]) {
    cases[`${rows} rows of ${rowLength} in a ${Class.name}`] = () => ({
      source: patterned(Class, rows * rowLength),
      index: edges(rows, rows),
      rowLength,
    })
  }
}

/** Indices over all of the rows, both ends first. */
function edges(rows, length) {
  const index = new BigInt64Array(length)
  const n = BigInt(rows)
  const step = 7_919n * 1_000_003n
  for (let i = 0n; i < BigInt(length); i++) index[i] = ((i * step) % (2n * n)) - n
  index.set([0n, n - 1n, -1n, -n])
  return index
}

async function main() {
  let [passed, failed] = [0, 0]
  for (const [name, make] of Object.entries(cases)) {
    const { source, index, rowLength = 1 } = make()
    const gib = ((source.byteLength + index.byteLength) / GIB).toFixed(2)
    for (const device of devices) {
      globalThis.gc?.()
      const start = performance.now()
      try {
        const result = await cudaGather(source, index, { rowLength, device })
        const seconds = ((performance.now() - start) / 1000).toFixed(2)
        check(result, source, index, rowLength)
        console.log(
          `ok    ${name} [${device}]: ${gib} GiB in, ${(result.byteLength / GIB).toFixed(2)} GiB out, ${seconds} s`,
        )
        passed++
      } catch (error) {
        console.log(`FAIL  ${name} [${device}]: ${error.stack}`)
        failed++
      }
    }
  }
  const bad = await badIndexPastTwoToTheThirtyOne()
  console.log(`${bad ? 'FAIL ' : 'ok   '} a bad index past position 2^31${bad ? `: ${bad}` : ''}`)
  if (bad) failed++
  else passed++
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed > 0 ? 1 : 0
}

/** The error of a bad index at position 2^31 + 3, on each device; null where it is right. */
async function badIndexPastTwoToTheThirtyOne() {
  const index = new Int8Array(2 ** 31 + 5)
  index[2 ** 31 + 3] = -9
  for (const device of devices) {
    globalThis.gc?.()
    const error = await cudaGather(Uint8Array.of(1, 2, 3), index, { device }).catch((e) => e)
    const { position, index: value, length } = error
    if (position !== 2 ** 31 + 3 || value !== -9 || length !== 3)
      return `[${device}] ${error.stack}`
  }
  return null
}

main()
