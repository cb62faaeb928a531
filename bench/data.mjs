// The arrays that everybody gathers from and by: random bits, the same on every run, and files of them
// for the peers.

import { createCipheriv } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Fills an array with the key stream of AES, which is random enough and fast: seconds for 512 MiB. */
export function fillRandom(array, seed) {
  const key = Buffer.alloc(16)
  key.writeUInt32LE(seed)
  const cipher = createCipheriv('aes-128-ctr', key, Buffer.alloc(16))
  const bytes = Buffer.from(array.buffer, array.byteOffset, array.byteLength)
  const zeros = Buffer.alloc(1 << 20)
  for (let at = 0; at < bytes.length; at += zeros.length)
    cipher.update(zeros.subarray(0, bytes.length - at)).copy(bytes, at)
  return array
}

/** `length` numbers of 0 … rows - 1. */
export function randomIndex(length, rows, seed) {
  const index = fillRandom(new Int32Array(length), seed)
  for (let i = 0; i < length; i++) index[i] = (index[i] >>> 0) % rows
  return index
}

/** A gather in JavaScript, which moves bits: a float loop need not keep the payload of every NaN. */
export function expectedOf(source, index) {
  const from = new Uint32Array(source.buffer, source.byteOffset, source.length)
  const expected = new Uint32Array(index.length)
  for (let i = 0; i < index.length; i++) expected[i] = from[index[i]]
  return expected
}

/** Whether two arrays hold the same bytes. */
export function sameBytes(a, b) {
  const bytes = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength)
  return a.byteLength === b.byteLength && Buffer.compare(bytes(a), bytes(b)) === 0
}

/** A folder for files that the peers read, and its end. */
export class Files {
  folder = mkdtempSync(path.join(tmpdir(), 'cugather-bench-'))
  #written = new Set()

  /** The path of the file that holds an array; written once. */
  of(name, array) {
    const file = path.join(this.folder, name)
    if (!this.#written.has(name))
      writeFileSync(file, Buffer.from(array.buffer, array.byteOffset, array.byteLength))
    this.#written.add(name)
    return file
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
