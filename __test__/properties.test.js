// Random gathers against the slow model.

const fc = require('fast-check')
const { bytesOf, dtypes, isBigInt, isInteger } = require('./helpers/arrays.js')
const { model } = require('./helpers/model.js')
const { sameBytes } = require('./helpers/assert.js')
const { onEachDevice } = require('./helpers/devices.js')

const classes = Object.values(dtypes)

/** A view of `length` random elements that begins anywhere its class allows in its buffer. */
const view = (Class, length) =>
  fc
    .record({
      offset: fc.nat(4).map((elements) => elements * Class.BYTES_PER_ELEMENT),
      bytes: fc.uint8Array({
        minLength: length * Class.BYTES_PER_ELEMENT,
        maxLength: length * Class.BYTES_PER_ELEMENT,
      }),
    })
    .map(({ offset, bytes }) => {
      const buffer = new ArrayBuffer(offset + bytes.length + 3)
      new Uint8Array(buffer).set(bytes, offset)
      return new Class(buffer, offset, length)
    })

/** Indices mostly within two periods of `rows`, some anywhere in the class. */
const indices = (Class, rows) => {
  const bits = BigInt(Class.BYTES_PER_ELEMENT * 8)
  const signed = /^(Int|BigInt)/.test(Class.name)
  const [min, max] = signed
    ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
    : [0n, (1n << bits) - 1n]
  const clamp = (value) => (value < min ? min : value > max ? max : value)
  const n = BigInt(rows)
  const near = fc.bigInt({ min: clamp(-2n * n - 2n), max: clamp(2n * n + 2n) })
  const valid = fc.bigInt({ min: clamp(-n), max: clamp(n > 0n ? n - 1n : 0n) })
  const value = fc.oneof(
    { weight: 30, arbitrary: valid },
    { weight: 2, arbitrary: near },
    { weight: 1, arbitrary: fc.bigInt({ min, max }) },
  )
  return fc
    .array(value, { maxLength: 60 })
    .map((values) => Class.from(values, isBigInt(Class) ? (value) => value : Number))
}

const fillValue = (Class) => {
  if (isBigInt(Class)) return fc.constantFrom(0n, 7n, 1n << 62n)
  return isInteger(Class) ? fc.constantFrom(0, 7, 127) : fc.double()
}

const call = fc
  .record({
    Source: fc.constantFrom(...classes),
    Index: fc.constantFrom(...classes.filter(isInteger)),
    rows: fc.oneof(fc.nat(40), fc.constant(0), fc.constant(300)),
    rowLength: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 })),
    mode: fc.constantFrom('raise', 'wrap', 'clip', 'fill'),
    wrapNegative: fc.boolean(),
  })
  .chain(({ Source, Index, rows, ...options }) =>
    fc.record({
      source: view(Source, rows * options.rowLength),
      index: indices(Index, rows),
      options: fillValue(Source).map((fillValue) => ({ ...options, fillValue })),
      intoOut: fc.boolean(),
    }),
  )

onEachDevice('any gather is what the model says', async (t, gather) => {
  let failures = 0
  const property = fc.asyncProperty(call, async ({ source, index, options, intoOut }) => {
    const expected = model(source, index, options)
    const out = intoOut ? new source.constructor(index.length * options.rowLength) : undefined
    if (out) bytesOf(out).fill(0xa5)
    const [{ value, reason }] = await Promise.allSettled([
      gather(source, index, { ...options, out }),
    ])
    if (expected.error) {
      failures++
      const { position, index: at, length } = reason
      return (
        Object.is(position, expected.error.position) &&
        at === expected.error.index &&
        length === expected.error.length &&
        (!out || bytesOf(out).every((byte) => byte === 0xa5))
      )
    }
    return sameBytes(value, expected.bytes) && (!out || value === out)
  })
  await fc.assert(property, { numRuns: 2000 })
  t.true(failures > 100 && failures < 1900, `${failures} of 2000 gathers were to fail`)
})
