// Right answers made with numpy, on each device.

const test = require('ava')
const { rejectsAt, sameBytes } = require('./helpers/assert.js')
const { onEachDevice } = require('./helpers/devices.js')
const { vectors } = require('./helpers/vectors.js')

onEachDevice('every vector', async (t, gather) => {
  for (const { name, source, index, options, bytes, error } of vectors) {
    const promise = gather(source, index, options)
    if (error) {
      await rejectsAt(t, promise, error)
    } else {
      const result = await promise
      t.is(result.constructor, source.constructor, name)
      t.true(sameBytes(result, bytes), name)
    }
  }
})

test('there are 325 vectors, and they name every class and mode', (t) => {
  t.is(vectors.length, 325)
  const named = (pick) => new Set(vectors.map(pick)).size
  t.is(
    named((vector) => vector.options.mode),
    4,
  )
  t.is(
    named((vector) => vector.index.constructor),
    8,
  )
  // float16 shares uint16's class where the runtime has none of its own.
  t.is(
    named((vector) => vector.source.constructor),
    globalThis.Float16Array ? 11 : 10,
  )
})
