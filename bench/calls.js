// Times require('cugather'), and whole calls, promise and all: 1 Mi random float32 out of 128 Mi,
// from an ordinary array and from a DeviceArray, beside a JavaScript loop on the same data. Medians
// after a warm-up; every result is compared with the loop's.
//
//   node bench/calls.js [DEVICE]

// First of all, so that nothing of it is loaded yet.
const beforeRequire = performance.now()
const { cudaGather, DeviceArray } = require('../index.js')
const requireMs = performance.now() - beforeRequire

const { xoroshiro128plus } = require('pure-rand/generator/xoroshiro128plus')
const { uniformFloat32 } = require('pure-rand/distribution/uniformFloat32')
const { uniformInt } = require('pure-rand/distribution/uniformInt')

const SOURCE = 128 * 2 ** 20
const INDEX = 2 ** 20
const ROUNDS = 21

const device = process.argv[2]

async function median(work) {
  const times = []
  for (let round = 0; round < ROUNDS + 3; round++) {
    const start = performance.now()
    await work()
    if (round >= 3) times.push(performance.now() - start)
  }
  return times.sort((a, b) => a - b)[ROUNDS >> 1]
}

async function main() {
  const random = xoroshiro128plus(20261201)
  const source = new Float32Array(SOURCE)
  for (let i = 0; i < SOURCE; i++) source[i] = uniformFloat32(random)
  const index = new Int32Array(INDEX)
  for (let i = 0; i < INDEX; i++) index[i] = uniformInt(random, 0, SOURCE - 1)

  const expected = new Float32Array(INDEX)
  const loop = () => {
    const out = new Float32Array(INDEX)
    for (let i = 0; i < INDEX; i++) out[i] = source[index[i]]
    return out
  }
  expected.set(loop())
  const right = (result) => {
    if (Buffer.compare(Buffer.from(result.buffer), Buffer.from(expected.buffer)) !== 0) {
      throw new Error('a result differs from the loop')
    }
  }

  const array = await DeviceArray.from(source, { device })
  const out = new Float32Array(INDEX)
  const kept = []
  const calls = {
    'JavaScript loop': async () => loop(),
    'from an ordinary array': () => cudaGather(source, index, { device }),
    'from a DeviceArray, results dropped': () => array.gather(index),
    'from a DeviceArray, results kept': async () => kept[kept.push(await array.gather(index)) - 1],
    'from a DeviceArray, into an out': () => array.gather(index, { out }),
    'DeviceArray.from': async () => {
      const copy = await DeviceArray.from(source, { device })
      copy.dispose()
    },
  }
  console.log(`require('cugather') ${requireMs.toFixed(1)} ms`)
  console.log(`on ${array.device}: ${INDEX} of ${SOURCE} float32`)
  for (const [name, call] of Object.entries(calls)) {
    const result = await call()
    if (result) right(result)
    const ms = await median(call)
    console.log(`${name.padEnd(36)} ${ms.toFixed(3).padStart(9)} ms`)
  }
}

main()
