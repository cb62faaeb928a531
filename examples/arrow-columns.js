// Rows of an Apache Arrow table by their numbers, nulls included, with the columns on the GPU: what `take` is in
// pyarrow. node examples/arrow-columns.js

const { DataType, makeData, makeVector, Table, tableFromArrays } = require('apache-arrow')
const { DeviceArray } = require('cugather')

/** Elements of all chunks, one after the other: `stride` of them a row. */
function valuesOf(vector) {
  const [first] = vector.data
  const values = new first.values.constructor(vector.length * first.stride)
  let end = 0
  for (const { values: chunk, length, stride } of vector.data) {
    // Arrow pads its buffers.
    values.set(chunk.subarray(0, length * stride), end)
    end += length * stride
  }
  return values
}

/** A byte a row, 1 where the row is not null: Arrow's own bits can't be gathered one by one. */
const validityOf = (vector) =>
  Uint8Array.from({ length: vector.length }, (_, i) => vector.isValid(i))

/** Arrow's bits, the lowest first, and how many of them are 0. */
function packed(validity) {
  const bitmap = new Uint8Array((validity.length + 7) >> 3)
  let nullCount = 0
  for (const [i, valid] of validity.entries()) {
    bitmap[i >> 3] |= valid << (i & 7)
    nullCount += 1 - valid
  }
  return { nullBitmap: nullCount > 0 ? bitmap : undefined, nullCount }
}

/** A table with its columns on the device. */
class DeviceTable {
  #columns

  constructor(columns) {
    this.#columns = columns
  }

  /**
   * Copies the columns of an Arrow table of one row or more: numbers, dates, times, and strings that are
   * dictionary-encoded (their codes are gathered, the dictionary stays). A TypeError for any other type.
   */
  static async from(table) {
    const columns = table.schema.fields.map(({ name, type }) => {
      const vector = table.getChild(name)
      const [{ values, stride, dictionary, valueOffsets }] = vector.data
      // What has offsets is of varying size, what has no values is nested, and booleans are bits.
      if (!values || valueOffsets || DataType.isBool(type)) {
        throw new TypeError(
          `The column '${name}' is a ${type}, which has no elements of fixed size`,
        )
      }
      if (vector.data.some((chunk) => chunk.dictionary !== dictionary)) {
        throw new TypeError(`The chunks of the column '${name}' have a dictionary each`)
      }
      return { name, type, stride, dictionary, vector }
    })
    const copies = columns.map(async ({ vector, ...column }) => ({
      ...column,
      values: await DeviceArray.from(valuesOf(vector), { rowLength: column.stride }),
      validity: await DeviceArray.from(validityOf(vector)),
    }))
    return new DeviceTable(await Promise.all(copies))
  }

  /**
   * A new Arrow table of these rows, in this order. -1 gives a row of nulls, as an outer join wants it: its values and
   * its validity are filled with 0. Any other number that is no row is a RangeError.
   */
  async take(rows, { signal } = {}) {
    // Mode 'fill' would take any number that is no row for "no row", and only -1 is meant.
    const height = this.#columns[0].validity.length
    const position = rows.findIndex((row) => row < -1 || row >= height)
    if (position >= 0) throw new RangeError(`There is no row ${rows[position]} of ${height}`)

    const options = { mode: 'fill', wrapNegative: false, signal }
    const taken = this.#columns.map(async ({ name, type, dictionary, values, validity }) => {
      const fillValue = values.dtype.startsWith('big') ? 0n : 0
      const [data, valid] = await Promise.all([
        values.gather(rows, { ...options, fillValue }),
        validity.gather(rows, { ...options, fillValue: 0 }),
      ])
      return [
        name,
        makeVector(makeData({ type, dictionary, data, length: rows.length, ...packed(valid) })),
      ]
    })
    return new Table(Object.fromEntries(await Promise.all(taken)))
  }

  dispose() {
    for (const { values, validity } of this.#columns) {
      values.dispose()
      validity.dispose()
    }
  }
}

async function main() {
  const table = tableFromArrays({
    city: ['Oslo', 'Lima', 'Pune'],
    area: Float64Array.of(454, 2672, 331),
  })
  const columns = await DeviceTable.from(table)
  console.table((await columns.take(Int32Array.of(2, 0, -1))).toArray().map((row) => row.toJSON()))
  columns.dispose()
}

if (require.main === module) main()

module.exports = { DeviceTable }
