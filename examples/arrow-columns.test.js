const test = require('ava')
const {
  Bool,
  DateMillisecond,
  Decimal,
  Float32,
  Int16,
  Int64,
  makeVector,
  Table,
  Utf8,
  tableFromIPC,
  tableToIPC,
  vectorFromArray,
} = require('apache-arrow')
const { DeviceTable } = require('./arrow-columns.js')

const HEIGHT = 1000
/** A column's elements, every seventh of them null. */
const column = (make) => Array.from({ length: HEIGHT }, (_, i) => (i % 7 === 3 ? null : make(i)))

const words = ['red', 'green', 'blue']
const table = new Table({
  f32: vectorFromArray(column(Math.fround), new Float32()),
  i16: vectorFromArray(
    column((i) => i - 500),
    new Int16(),
  ),
  i64: vectorFromArray(
    column((i) => 2n ** 60n + BigInt(i)),
    new Int64(),
  ),
  date: vectorFromArray(
    column((i) => new Date(i * 86_400_000)),
    new DateMillisecond(),
  ),
  decimal: vectorFromArray(
    column((i) => Uint32Array.of(i, 0, 0, 0)),
    new Decimal(2, 20, 128),
  ),
  word: vectorFromArray(column((i) => words[i % 3])), // dictionary-encoded
  whole: makeVector(Float64Array.from({ length: HEIGHT }, (_, i) => Math.sqrt(i))), // no nulls
})

/** Rows as plain objects, read by Arrow alone. */
const plain = (table) =>
  table.toArray().map((row) => {
    const { decimal, ...rest } = row.toJSON()
    return { ...rest, ...(decimal && { decimal: [...decimal] }) }
  })

async function loaded(t, arrow) {
  const columns = await DeviceTable.from(arrow)
  t.teardown(() => columns.dispose())
  return columns
}

test('rows come out as Arrow itself reads them, nulls and dictionary included', async (t) => {
  const columns = await loaded(t, table)
  const rows = Int32Array.from({ length: 5000 }, (_, i) => (i * 7919) % HEIGHT)
  const taken = await columns.take(rows)
  const all = plain(table)
  t.deepEqual(
    plain(taken),
    Array.from(rows, (row) => all[row]),
  )
  t.deepEqual(taken.schema.fields.map(String), table.schema.fields.map(String))
  t.is(taken.getChild('whole').nullCount, 0)
})

test('-1 gives a row of nulls', async (t) => {
  const columns = await loaded(t, table)
  const taken = await columns.take(Int32Array.of(5, -1, 6))
  const [five, none, six] = taken.toArray().map((row) => row.toJSON())
  t.true(Object.values(none).every((value) => value === null))
  t.is(five.word, 'blue')
  t.is(six.i16, -494)
})

test('a number that is no row is refused', async (t) => {
  const columns = await loaded(t, table)
  await t.throwsAsync(columns.take(Int32Array.of(0, HEIGHT)), { instanceOf: RangeError })
  await t.throwsAsync(columns.take(Int32Array.of(-2)), { instanceOf: RangeError })
})

test('a table in chunks, and a slice of one', async (t) => {
  const chunks = table.concat(table).slice(10, 1500)
  t.is(chunks.getChild('f32').data.length, 2)
  const columns = await loaded(t, chunks)
  const rows = Int32Array.of(0, 989, 990, 1489)
  const taken = await columns.take(rows)
  t.deepEqual(
    plain(taken),
    Array.from(rows, (row) => plain(chunks)[row]),
  )
})

test('what was taken goes through IPC', async (t) => {
  const columns = await loaded(t, table)
  const taken = await columns.take(Int32Array.of(1, 3, -1))
  t.deepEqual(plain(tableFromIPC(tableToIPC(taken))), plain(taken))
})

for (const [name, vector] of Object.entries({
  strings: vectorFromArray(['a', 'bb'], new Utf8()),
  bits: vectorFromArray([true, false], new Bool()),
  lists: vectorFromArray([[1], [2, 3]]),
})) {
  test(`a column of ${name} is refused by its name`, async (t) => {
    const arrow = new Table({ odd: vector })
    await t.throwsAsync(DeviceTable.from(arrow), { instanceOf: TypeError, message: /'odd'/ })
  })
}

test('a signal that is aborted', async (t) => {
  const columns = await loaded(t, table)
  const signal = AbortSignal.abort()
  await t.throwsAsync(columns.take(Int32Array.of(0), { signal }), { code: 'ABORT_ERR' })
})
