const { bytesOf } = require('./arrays.js')
const { model } = require('./model.js')

/** Whether two views hold the same bytes. Not `t.deepEqual`: it is slow on large arrays. */
const sameBytes = (a, b) => Buffer.compare(bytesOf(a), bytesOf(b)) === 0

/** Asserts the whole RangeError of a bad index. */
async function rejectsAt(t, promise, { position, index, length }) {
  const error = await t.throwsAsync(promise, { instanceOf: RangeError, code: 'ERR_OUT_OF_RANGE' })
  t.is(
    error?.message,
    `index ${index} at position ${position} is out of bounds for axis 0 with size ${length}`,
  )
  t.deepEqual(
    { position: error?.position, index: error?.index, length: error?.length },
    { position, index, length },
  )
}

/** Asserts that a gather gives what the model gives, result or error. */
async function agreesWithModel(t, gather, source, index, options) {
  const expected = model(source, index, options)
  const promise = gather(source, index, options)
  if (expected.error) return rejectsAt(t, promise, expected.error)
  const result = await promise
  t.is(result.constructor, source.constructor)
  t.true(sameBytes(result, expected.bytes), 'the result differs from the model')
}

module.exports = { agreesWithModel, rejectsAt, sameBytes }
