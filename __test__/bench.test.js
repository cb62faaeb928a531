// The benchmark's own sums: a figure that is missed must show, and so must a wrong result.

const test = require('ava')

const report = import('../bench/report.mjs')
const data = import('../bench/data.mjs')

test('a limit is met, missed, or not measured', async (t) => {
  const { compare, count, textTable } = await report
  t.like(compare('x', 2, 4, 0.5), { value: 0.5, met: true })
  t.like(compare('x', 2.1, 4, 0.5), { value: 0.525, met: false })
  t.like(compare('x', 2, undefined, 0.5), { value: null, met: null })
  const rows = [
    {
      name: 'a',
      cugather: { ms: 2 },
      peers: { x: { ms: 1 } },
      comparisons: [compare('x', 2, 1, 1)],
    },
    {
      name: 'b',
      cugather: { ms: 1 },
      peers: { x: { ms: 4 } },
      comparisons: [compare('x', 1, 4, 1)],
    },
    { name: 'c', peers: { x: { reason: 'no x' } }, comparisons: [compare('x', 1, undefined, 1)] },
    { name: 'd', error: 'a result is wrong' },
    { name: 'e', reason: 'no GPU' },
  ]
  t.deepEqual(count(rows), { met: 1, missed: 1, unknown: 1, failed: 1 })
  const table = textTable(rows)
  for (const words of [
    'missed by 100 %',
    'met',
    'not measured: no x',
    'FAILED: a result',
    'no GPU',
  ])
    t.true(table.includes(words), words)
})

test('one wrong bit is seen', async (t) => {
  const { expectedOf, randomIndex, fillRandom, sameBytes } = await data
  const source = fillRandom(new Float32Array(5000), 1)
  const index = randomIndex(3000, source.length, 2)
  t.true(index.every((row) => row >= 0 && row < source.length) && new Set(index).size > 1000)
  const expected = expectedOf(source, index)
  const result = Float32Array.from(expected)
  t.false(sameBytes(result, expected))
  const right = new Float32Array(expected.slice().buffer)
  t.true(sameBytes(right, expected))
  new Uint32Array(right.buffer)[2999] ^= 1
  t.false(sameBytes(right, expected))
})

test('calls are warm before they are timed', async (t) => {
  const { timesOf } = await import('../bench/measure.mjs')
  const calls = []
  const checked = []
  const work = async () => calls.push(performance.now())
  const begun = performance.now()
  const times = await timesOf(work, { rounds: 5, check: (call) => checked.push(call) })
  t.is(times.length, 5)
  // Three calls and 20 ms at least, however slow the machine is.
  t.true(calls.length >= 3 + 5)
  t.true(calls.at(-5) - begun >= 20)
  t.deepEqual(checked, [1, calls.length])
})
