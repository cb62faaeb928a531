// The vectors of vectors/take.json as arguments and expectations. They were made with numpy 2.4
// (mode 'fill', which numpy does not have, follows jax); a fixed seed gave the random ones.

const vectors = require('../vectors/take.json')
const { dtypes, fromBytes, isBigInt } = require('./arrays.js')

// A gather moves bits: where the runtime has no Float16Array, its cases run on their 16 bits.
const half = dtypes.float16 ? 'float16' : 'uint16'
const HALF_NAN = 0x7e00

function fillValue(text, dtype, Source) {
  if (text === undefined) return undefined
  if (dtype !== 'float16' || half === 'float16')
    return isBigInt(Source) ? BigInt(text) : Number(text)
  if (text === 'NaN') return HALF_NAN
  throw new Error(`the 16 bits of ${text} are not known here`)
}

function parse({ name, source, index, options, expect }) {
  const Source = dtypes[source.dtype === 'float16' ? half : source.dtype]
  const Index = dtypes[index.dtype]
  const toIndex = isBigInt(Index) ? BigInt : Number
  return {
    name,
    source: fromBytes(Source, Buffer.from(source.hex, 'hex')),
    index: Index.from(index.values, toIndex),
    options: { ...options, fillValue: fillValue(options.fillValue, source.dtype, Source) },
    /** The bytes of the result, or else `error`. */
    bytes: expect.error ? undefined : Buffer.from(expect.hex, 'hex'),
    error: expect.error && {
      position: expect.error.position,
      index: toIndex(expect.error.index),
      length: expect.error.length,
    },
  }
}

module.exports = { vectors: vectors.map(parse) }
