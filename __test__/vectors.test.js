// Right answers made with numpy, on each device.

const test = require('ava')
const vectors = require('./vectors/take.json')
const { dtypes, fromBytes, isBigInt } = require('./helpers/arrays.js')
const { rejectsAt, sameBytes } = require('./helpers/assert.js')
const { onEachDevice } = require('./helpers/devices.js')

// A gather moves bits: where the runtime has no Float16Array, its cases run on their 16 bits.
const half = dtypes.float16 ? 'float16' : 'uint16'
const HALF_NAN = 0x7e00

function read({ source, index, options }) {
  const dtype = source.dtype === 'float16' ? half : source.dtype
  const Source = dtypes[dtype]
  const Index = dtypes[index.dtype]
  const parseIndex = isBigInt(Index) ? BigInt : Number
  const parseFill = isBigInt(Source) ? BigInt : Number
  const parsed = { ...options }
  if (options.fillValue !== undefined) {
    const asHalf = source.dtype === 'float16' && dtype === 'uint16'
    if (asHalf && options.fillValue !== 'NaN') throw new Error('no such vector: give its bits')
    parsed.fillValue = asHalf ? HALF_NAN : parseFill(options.fillValue)
  }
  return {
    source: fromBytes(Source, Buffer.from(source.hex, 'hex')),
    index: Index.from(index.values, parseIndex),
    options: parsed,
    parseIndex,
  }
}

onEachDevice('every vector', async (t, gather) => {
  for (const vector of vectors) {
    const { source, index, options, parseIndex } = read(vector)
    const promise = gather(source, index, options)
    const expected = vector.expect
    if (expected.error) {
      const { position, length } = expected.error
      await rejectsAt(t, promise, { position, length, index: parseIndex(expected.error.index) })
    } else {
      const result = await promise
      t.is(result.constructor, source.constructor, vector.name)
      t.true(sameBytes(result, Buffer.from(expected.hex, 'hex')), vector.name)
    }
  }
})

test('there are 325 vectors, and they name every dtype and mode', (t) => {
  t.is(vectors.length, 325)
  const named = (pick) => [...new Set(vectors.map(pick))].sort()
  t.deepEqual(
    named((vector) => vector.options.mode),
    ['clip', 'fill', 'raise', 'wrap'],
  )
  t.is(named((vector) => vector.source.dtype).length, 11)
  t.is(named((vector) => vector.index.dtype).length, 8)
})
