const { setTimeout: sleep } = require('node:timers/promises')
const test = require('ava')
const { cudaGather, DeviceArray } = require('cugather')
const { createServer, randomTable } = require('./server.js')

const ROWS = 20_000
const ROW_LENGTH = 64
const weight = randomTable(ROWS, ROW_LENGTH)

/** A server that listens, on a port of its own, until the test ends. */
async function listening(t) {
  const table = await DeviceArray.from(weight, { rowLength: ROW_LENGTH })
  const app = createServer(table)
  t.teardown(() => app.close())
  return { app, table, url: await app.listen({ port: 0, host: '127.0.0.1' }) }
}

const lookup = (url, ids, options) =>
  fetch(`${url}/lookup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ids }),
    ...options,
  })

const statsOf = async (url) => (await fetch(`${url}/stats`)).json()

const randomIds = (length) => Array.from({ length }, () => Math.floor(Math.random() * ROWS))

function expectedRows(ids) {
  const rows = new Float32Array(ids.length * ROW_LENGTH)
  ids.forEach((id, i) => {
    rows.set(weight.subarray(id * ROW_LENGTH, (id + 1) * ROW_LENGTH), i * ROW_LENGTH)
  })
  return Buffer.from(rows.buffer)
}

test('concurrent lookups each get their own rows', async (t) => {
  const { url } = await listening(t)
  const requests = Array.from({ length: 100 }, (_, i) => randomIds(i * 7))
  await Promise.all(
    requests.map(async (ids) => {
      const response = await lookup(url, ids)
      t.is(response.status, 200)
      t.is(response.headers.get('x-row-length'), String(ROW_LENGTH))
      t.true(expectedRows(ids).equals(Buffer.from(await response.arrayBuffer())))
    }),
  )
  t.deepEqual(await statsOf(url), { running: 0, served: 100, aborted: 0, refused: 0 })
})

test('an id that names no row is a 400 that says which', async (t) => {
  const { url } = await listening(t)
  const response = await lookup(url, [5, ROWS, 7])
  t.is(response.status, 400)
  const { position, index, length } = await response.json()
  t.deepEqual({ position, index, length }, { position: 1, index: ROWS, length: ROWS })
  t.is((await lookup(url, [5])).status, 200)
})

for (const body of [{}, { ids: 'all' }, { ids: [1.5] }, { ids: [-1] }, { ids: [2 ** 31] }]) {
  test(`a body that is no list of ids is a 400: ${JSON.stringify(body)}`, async (t) => {
    const { url } = await listening(t)
    t.is((await lookup(url, undefined, { body: JSON.stringify(body) })).status, 400)
  })
}

test('a client that leaves takes its gather out of the queue', async (t) => {
  const { url } = await listening(t)
  // Gathers of tens of milliseconds each, which a lookup has to wait for.
  const source = new Float32Array(2 ** 24)
  const index = Int32Array.from({ length: 2 ** 22 }, (_, i) => (i * 7919) % source.length)
  let aborted = 0
  for (let attempt = 0; attempt < 5 && aborted === 0; attempt++) {
    const busy = Array.from({ length: 16 }, () => cudaGather(source, index))
    const client = new AbortController()
    const left = lookup(url, randomIds(10), { signal: client.signal }).catch(({ name }) => name)
    while ((await statsOf(url)).running === 0) await sleep(1)
    client.abort()
    t.is(await left, 'AbortError')
    while ((await statsOf(url)).running > 0) await sleep(1)
    aborted = (await statsOf(url)).aborted
    await Promise.all(busy)
  }
  t.is(aborted, 1)

  const ids = randomIds(10)
  const response = await lookup(url, ids)
  t.true(expectedRows(ids).equals(Buffer.from(await response.arrayBuffer())))
})

test('more lookups than are taken at a time are a 503', async (t) => {
  const table = await DeviceArray.from(weight, { rowLength: ROW_LENGTH })
  let open
  const gate = new Promise((resolve) => {
    open = resolve
  })
  // The table, behind a gate: so both lookups are still there when the third comes.
  const slow = {
    rowLength: ROW_LENGTH,
    gather: (...args) => gate.then(() => table.gather(...args)),
    dispose: () => table.dispose(),
  }
  const app = createServer(slow, { mostLookups: 2 })
  t.teardown(() => app.close())
  const url = await app.listen({ port: 0, host: '127.0.0.1' })

  const taken = [lookup(url, [1]), lookup(url, [2])]
  while ((await statsOf(url)).running < 2) await sleep(1)
  const refused = await lookup(url, [3])
  t.is(refused.status, 503)
  t.is(refused.headers.get('retry-after'), '1')
  open()
  for (const response of await Promise.all(taken)) t.is(response.status, 200)
  t.is((await lookup(url, [3])).status, 200)
})

test('the table is disposed of with the server', async (t) => {
  const { app, table } = await listening(t)
  await app.close()
  await t.throwsAsync(table.gather(Int32Array.of(0)), { code: 'ERR_DISPOSED' })
})
