const test = require('ava')
const { Scorers, score } = require('./shared-table.js')

const ROWS = 1000
const ROW_LENGTH = 16
const query = Float32Array.from({ length: ROW_LENGTH }, (_, k) => k + 1)

const sharedTable = () => fill(new Float32Array(new SharedArrayBuffer(ROWS * ROW_LENGTH * 4)), 1)

function fill(table, factor) {
  for (let i = 0; i < table.length; i++) table[i] = (i % 97) * factor
  return table
}

/** The scores, by a gather in JavaScript. */
function expected(table, ids) {
  const rows = Array.from(ids, (id) => [...table.subarray(id * ROW_LENGTH, (id + 1) * ROW_LENGTH)])
  return score(Float32Array.from(rows.flat()), query)
}

const randomIds = (length) => Int32Array.from({ length }, () => Math.floor(Math.random() * ROWS))

function scorersOf(t, table, options) {
  const scorers = new Scorers(table, { rowLength: ROW_LENGTH, ...options })
  t.teardown(() => scorers.close())
  return scorers
}

test('every job of every worker gets its own scores', async (t) => {
  const table = sharedTable()
  const scorers = scorersOf(t, table, { workers: 3 })
  const jobs = Array.from({ length: 200 }, (_, i) => randomIds(i))
  const scores = await Promise.all(jobs.map((ids) => scorers.score(ids, query)))
  jobs.forEach((ids, i) => {
    t.deepEqual(scores[i], expected(table, ids))
  })
})

test('workers see what is written to the table: it is one', async (t) => {
  const table = sharedTable()
  const scorers = scorersOf(t, table, { workers: 2 })
  const ids = randomIds(50)
  const before = await scorers.score(ids, query)
  fill(table, 3)
  for (let worker = 0; worker < 2; worker++) {
    const after = await scorers.score(ids, query)
    t.deepEqual(after, expected(table, ids))
    t.notDeepEqual(after, before)
  }
})

test('a bad id rejects its own job, with the position', async (t) => {
  const table = sharedTable()
  const scorers = scorersOf(t, table, { workers: 2 })
  const ids = randomIds(10)
  const [good, bad] = await Promise.allSettled([
    scorers.score(ids, query),
    scorers.score(Int32Array.of(1, ROWS), query),
  ])
  t.deepEqual(good.value, expected(table, ids))
  t.is(bad.reason.code, 'ERR_OUT_OF_RANGE')
  t.is(bad.reason.position, 1)
})

test('jobs that are not answered reject when the workers are closed', async (t) => {
  const scorers = new Scorers(sharedTable(), { rowLength: ROW_LENGTH, workers: 1 })
  const job = t.throwsAsync(scorers.score(randomIds(10), query), { message: /closed/ })
  await scorers.close()
  await job
})

test('a table that would be copied is refused', (t) => {
  t.throws(() => new Scorers(new Float32Array(16), { rowLength: ROW_LENGTH }), {
    instanceOf: TypeError,
  })
})
