// Loaded into each block of test-docs.mjs: compares the values, and fails a block that ends without having come to all
// of them, because a branch was not taken or a promise never settled.

const { inspect } = require('node:util')

const expectedChecks = Number(process.env.DOCS_CHECKS)
const seen = new Set()
let done = false

const flat = (text) => text.replace(/\s+/g, '')

globalThis.$check = (value, expected, at) => {
  seen.add(at)
  const got = inspect(value)
  if (flat(got) !== flat(expected)) throw new Error(`${at}: expected ${expected} but got ${got}`)
}

globalThis.$done = () => {
  done = true
}

process.on('exit', (code) => {
  if (code !== 0 || (done && seen.size === expectedChecks)) return
  const where = done ? '' : ', before its last line'
  console.error(`The block ended after ${seen.size} of ${expectedChecks} values${where}`)
  process.exitCode = 1
})
