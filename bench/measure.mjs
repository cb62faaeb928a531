// How long something takes.

/** The median of numbers; of an even count, the greater of the two in the middle. */
export function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1]
}

/** Code that is compiled while it runs takes many short calls to be as fast as it gets. */
const WARMUP_MS = 20

/**
 * Calls `work` `rounds` times, one after the other, after a warm-up of `warmup` calls and 20 ms at
 * least, and hands each result to `check` once its time is taken. Resolves to the times in
 * milliseconds. `before` and `check` are called for the first and the last: all rounds do the same.
 */
export async function timesOf(work, { rounds, warmup = 3, before, check }) {
  const times = []
  const begun = performance.now()
  let isWarm = false
  for (let call = 1; times.length < rounds; call++) {
    const isChecked = call === 1 || times.length === rounds - 1
    if (isChecked) before?.()
    const start = performance.now()
    const result = await work()
    const end = performance.now()
    if (isWarm) times.push(end - start)
    if (isChecked) check?.(result)
    isWarm ||= call >= warmup && end - begun >= WARMUP_MS
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
