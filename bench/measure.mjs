// How long something takes.

/** The median of numbers; of an even count, the greater of the two in the middle. */
export function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1]
}

/**
 * Calls `work` `rounds` times after a warm-up, one after the other, and hands each result to `check`
 * once its time is taken. Resolves to the times in milliseconds. `before` and `check` are called for
 * the first and the last: all rounds do the same.
 */
export async function timesOf(work, { rounds, warmup = 3, before, check }) {
  const times = []
  for (let round = 0; round < warmup + rounds; round++) {
    const isChecked = round === 0 || round === warmup + rounds - 1
    if (isChecked) before?.()
    const start = performance.now()
    const result = await work()
    const took = performance.now() - start
    if (round >= warmup) times.push(took)
    if (isChecked) check?.(result)
  }
  return times
}

/** What the numbers come to: the median and the spread, in milliseconds to the microsecond. */
export function summary(times) {
  const round = (ms) => Math.round(ms * 1e4) / 1e4
  return {
    ms: round(median(times)),
    least: round(Math.min(...times)),
    most: round(Math.max(...times)),
    rounds: times.length,
  }
}
