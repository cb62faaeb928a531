// The control block of the stand-in driver (driver/driver.cpp): what is to fail, and what is alive.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const FUNCTIONS = fs
  .readFileSync(path.join(__dirname, 'driver', 'functions.h'), 'utf8')
  .match(/(?<=^FUNCTION\()\w+/gm)

const SIZE = 368
const CALLS_AT = 112
const ALIVE = [
  'allocations',
  'bytes',
  'pageLocked',
  'pageLockedBytes',
  'streams',
  'events',
  'contexts',
  'modules',
  'pending',
]

class Control {
  /** The block in the file that CUGATHER_STAND_IN names to this process. */
  static ofThisProcess() {
    return new Control(process.env.CUGATHER_STAND_IN)
  }

  /** A block in a new file. */
  static create() {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cugather-stand-in-'))
    const file = path.join(folder, 'control')
    fs.writeFileSync(file, Buffer.alloc(SIZE))
    const control = new Control(file)
    control.failNothing()
    return control
  }

  constructor(file) {
    this.file = file
    this.descriptor = fs.openSync(file, 'r+')
  }

  remove() {
    fs.closeSync(this.descriptor)
    fs.rmSync(path.dirname(this.file), { recursive: true })
  }

  #write(values) {
    fs.writeSync(this.descriptor, Buffer.from(Int32Array.from(values).buffer), 0, undefined, 0)
  }

  #read() {
    const block = Buffer.alloc(SIZE)
    fs.readSync(this.descriptor, block, 0, SIZE, 0)
    return block
  }

  /** Makes the `call`-th call of a function from now on fail; sticky: and all calls after it. */
  fail({ name, call, code, sticky = false }) {
    this.#write([FUNCTIONS.indexOf(name), call, code, sticky ? 1 : 0, 0])
  }

  failNothing() {
    this.#write([-1, 0, 0, 0, 0])
  }

  /** Calls that have been made to fail since `fail`. */
  get injected() {
    return this.#read().readInt32LE(16)
  }

  /** How often each function has been called. */
  get calls() {
    const block = this.#read()
    const count = (_, i) => block.readInt32LE(CALLS_AT + 4 * i)
    return Object.fromEntries(FUNCTIONS.map((name, i) => [name, count(name, i)]))
  }

  /** What the driver holds. */
  get alive() {
    const block = this.#read()
    return Object.fromEntries(
      ALIVE.map((name, i) => [name, Number(block.readBigInt64LE(32 + 8 * i))]),
    )
  }
}

module.exports = { Control, FUNCTIONS }
