// An embedding lookup over HTTP: the table lives on the GPU, requests name rows, and a client that leaves takes its
// gather with it. node examples/embedding-server/server.js

const Fastify = require('fastify')
const { DeviceArray } = require('cugather')

/** Ids in one request: what bounds the memory that a request can cost. */
const MOST_IDS = 65536

const schema = {
  body: {
    type: 'object',
    required: ['ids'],
    additionalProperties: false,
    properties: {
      ids: {
        type: 'array',
        maxItems: MOST_IDS,
        items: { type: 'integer', minimum: 0, maximum: 2 ** 31 - 1 },
      },
    },
  },
}

/**
 * Aborts when the connection goes away before the answer has gone out. The reply's 'close' and not the request's, which
 * comes as soon as the body has been read; Fastify's own `request.signal` goes by the request's.
 */
function signalOf(reply) {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort(new Error('the client has left'))
  })
  return controller.signal
}

/**
 * The server, not listening yet. `table`: a DeviceArray of float32 with a rowLength; it is disposed of when the server
 * closes. `mostLookups`: how many are taken at a time. Two of them run, the others wait in cugather's queue; it is
 * better to say no than to be late. Other options are Fastify's.
 *
 * - `POST /lookup` with `{ "ids": [3, 1] }` answers with the rows, one after the other, as little-endian float32.
 *   400 where an id names no row, saying which; 503 where too many lookups wait.
 * - `GET /stats` answers `{ running, served, aborted, refused }`.
 */
function createServer(table, { mostLookups = 256, ...options } = {}) {
  const app = Fastify({ bodyLimit: MOST_IDS * 12, ...options })
  const stats = { running: 0, served: 0, aborted: 0, refused: 0 }

  app.post('/lookup', { schema }, async (request, reply) => {
    if (stats.running >= mostLookups) {
      stats.refused++
      return reply.code(503).header('retry-after', 1).send({ error: 'too many lookups' })
    }
    stats.running++
    try {
      const ids = Int32Array.from(request.body.ids)
      const rows = await table.gather(ids, { signal: signalOf(reply) })
      stats.served++
      reply.type('application/octet-stream').header('x-row-length', table.rowLength)
      // The rows' own memory, not a copy. Every platform that cugather runs on is little-endian.
      return Buffer.from(rows.buffer)
    } catch (error) {
      if (error.code === 'ABORT_ERR') {
        stats.aborted++
        return reply.hijack() // There is nobody to answer.
      }
      if (error.code !== 'ERR_OUT_OF_RANGE') throw error
      const { message, position, index, length } = error
      return reply.code(400).send({ error: message, position, index, length })
    } finally {
      stats.running--
    }
  })

  app.get('/stats', () => stats)
  // After the last answer: Fastify waits for those.
  app.addHook('onClose', () => table.dispose())
  return app
}

/** A table as a model would have trained it: here, random. */
function randomTable(rows, rowLength) {
  return Float32Array.from({ length: rows * rowLength }, () => Math.random() - 0.5)
}

async function main() {
  const rowLength = 128
  const table = await DeviceArray.from(randomTable(100_000, rowLength), { rowLength })
  const app = createServer(table, { logger: true })
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => app.close())
  await app.listen({ port: Number(process.env.PORT ?? 3000) })
}

if (require.main === module) main()

module.exports = { createServer, randomTable }
