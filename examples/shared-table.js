// A pipeline over worker threads that share one table through a SharedArrayBuffer: each worker gathers the rows that a
// job names and scores them against a query. No thread has a copy of the table. node examples/shared-table.js

const { isMainThread, parentPort, Worker, workerData } = require('node:worker_threads')
const { cudaGather } = require('cugather')

/** The dot product of each row with the query. */
function score(rows, query) {
  const scores = new Float32Array(rows.length / query.length)
  for (let i = 0; i < scores.length; i++) {
    let sum = 0
    for (let k = 0; k < query.length; k++) sum += rows[i * query.length + k] * query[k]
    scores[i] = sum
  }
  return scores
}

function serve({ table, rowLength, device }) {
  parentPort.on('message', async ({ id, ids, query }) => {
    try {
      const rows = await cudaGather(table, ids, { rowLength, device })
      const scores = score(rows, query)
      // A result is never shared, so it can be transferred.
      parentPort.postMessage({ id, scores }, [scores.buffer])
    } catch (error) {
      // The fields of an error, `code` and `position` among them, don't survive a message.
      const { message, code, position } = error
      parentPort.postMessage({ id, failure: { message, code, position } })
    }
  })
}

/** Workers that score rows of one table, until they are closed. */
class Scorers {
  #workers
  #waiting = new Map()
  #next = 0

  /**
   * `table`: a typed array on a SharedArrayBuffer, rows of `rowLength`. `device`: 'auto' reads the few rows of a job
   * where the table is, in host memory; a table that should be on the GPU is a DeviceArray in one thread instead.
   */
  constructor(table, { rowLength, workers = 4, device = 'auto' }) {
    if (!(table.buffer instanceof SharedArrayBuffer)) {
      throw new TypeError('Expected a table on a SharedArrayBuffer: any other would be copied')
    }
    const options = { workerData: { table, rowLength, device } }
    this.#workers = Array.from({ length: workers }, () => new Worker(__filename, options))
    for (const worker of this.#workers) {
      worker.on('message', (answer) => this.#settle(answer))
      worker.on('error', (error) => this.#fail(error))
    }
  }

  /** Scores of the rows `ids` (Int32Array), which stay the caller's. */
  score(ids, query) {
    const id = this.#next++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#workers[id % this.#workers.length].postMessage({ id, ids, query })
    })
  }

  /** Ends the workers; jobs that are not answered yet reject. */
  async close() {
    this.#fail(new Error('The workers were closed'))
    await Promise.all(this.#workers.map((worker) => worker.terminate()))
  }

  #settle({ id, scores, failure }) {
    const job = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (failure) job?.reject(Object.assign(new Error(failure.message), failure))
    else job?.resolve(scores)
  }

  #fail(error) {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

async function main() {
  const rowLength = 64
  const rows = 100_000
  const table = new Float32Array(new SharedArrayBuffer(rows * rowLength * 4))
  for (let i = 0; i < table.length; i++) table[i] = Math.random() - 0.5
  const query = table.slice(0, rowLength)

  const scorers = new Scorers(table, { rowLength })
  const jobs = Array.from({ length: 100 }, () =>
    Int32Array.from({ length: 1000 }, () => Math.floor(Math.random() * rows)),
  )
  const start = performance.now()
  const scores = await Promise.all(jobs.map((ids) => scorers.score(ids, query)))
  const ms = performance.now() - start
  await scorers.close()
  const best = scores.reduce((most, some) => some.reduce((a, b) => Math.max(a, b), most), -Infinity)
  console.log(`${jobs.length} jobs in ${ms.toFixed(1)} ms, the best score ${best.toFixed(3)}`)
}

if (isMainThread) {
  if (require.main === module) main()
} else if (workerData?.table) {
  serve(workerData)
}

module.exports = { Scorers, score }
