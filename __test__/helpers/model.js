// The gather as slow and as plain as it can be: the table of the contract, row by row, in bigints,
// moving bytes.

const { bytesOf } = require('./arrays.js')

// The row that an index names, 'fill' or 'outside', for n rows.
function place(i, n, mode, wrapNegative) {
  if (mode === 'wrap') return n === 0n ? 'outside' : ((i % n) + n) % n
  if (mode === 'clip') {
    if (n === 0n) return 'outside'
    if (i < 0n) return 0n
    return i < n ? i : n - 1n
  }
  if (i >= 0n && i < n) return i
  if (i < 0n && i >= -n && wrapNegative) return i + n
  return mode === 'fill' ? 'fill' : 'outside'
}

/**
 * What `cudaGather` must give: `{ bytes }` of the result, or the `{ error }` with its position,
 * index and length.
 */
function model(source, index, options = {}) {
  const { mode = 'raise', fillValue = Number.NaN, wrapNegative = true, rowLength = 1 } = options
  const Class = source.constructor
  const rowBytes = rowLength * source.BYTES_PER_ELEMENT
  const rows = BigInt(source.length / rowLength)
  const from = bytesOf(source)
  const out = new Uint8Array(index.length * rowBytes)
  const fill = mode === 'fill' && bytesOf(new Class(rowLength).fill(fillValue))
  for (let position = 0; position < index.length; position++) {
    const row = place(BigInt(index[position]), rows, mode, wrapNegative)
    if (row === 'outside') {
      return { error: { position, index: index[position], length: Number(rows) } }
    }
    const start = Number(row) * rowBytes
    out.set(row === 'fill' ? fill : from.subarray(start, start + rowBytes), position * rowBytes)
  }
  return { bytes: out }
}

module.exports = { model }
