// What others feel of it: how late the event loop's timers are, and how long fs.readFile waits for one
// of libuv's threads.

import { writeFileSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { median } from './measure.mjs'

/** Keeps `work` going until `stop()`, `atOnce` of it at a time, and counts in `calls` what is done. */
function keepGoing(work, atOnce) {
  let isOver = false
  const going = { calls: 0, stop }
  const one = async () => {
    while (!isOver) {
      await work()
      going.calls++
    }
  }
  const done = Promise.all(Array.from({ length: atOnce }, one))
  function stop() {
    isOver = true
    return done
  }
  return going
}

/**
 * What `delayDuring` gives for Node's own reads of a file into new buffers: what results that are made
 * and dropped at such a rate cost whoever makes them.
 */
export async function delayDuringReads(file, atOnce, ms) {
  const handle = await open(file)
  const { size } = await handle.stat()
  const read = () => handle.read(Buffer.allocUnsafeSlow(size), 0, size, 0)
  try {
    return await delayDuring(read, atOnce, ms)
  } finally {
    await handle.close()
  }
}

/**
 * What `delayDuring` gives for so many new arrays a second that nobody writes to, of which `held` are
 * kept at a time: what V8 makes of as many to collect, without the cost of memory that was used.
 */
export async function delayDuringArrays(bytes, held, perSecond, ms) {
  const arrays = []
  const begun = performance.now()
  const seconds = () => (performance.now() - begun) / 1000
  let made = 0
  const work = async () => {
    await turn()
    if (made < seconds() * perSecond) arrays[made++ % held] = Buffer.allocUnsafeSlow(bytes)
  }
  const { ms: delay } = await delayDuring(work, 1, ms)
  return { ms: delay, perSecond: made / seconds() }
}

/**
 * The event loop's delay while `work` goes on for `ms`, `atOnce` of it at a time (none: idle): its 99th
 * percentile in milliseconds, how often a second `work` was done, and what share of its time the loop was
 * busy.
 */
export async function delayDuring(work, atOnce, ms) {
  const going = keepGoing(work, atOnce)
  // The start, with its first touches, is no part of it.
  await sleep(ms / 4)
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  histogram.enable()
  const [begun, before] = [performance.now(), going.calls]
  const since = performance.eventLoopUtilization()
  await sleep(ms)
  histogram.disable()
  const perSecond = ((going.calls - before) * 1000) / (performance.now() - begun)
  const { utilization } = performance.eventLoopUtilization(since)
  await going.stop()
  return { ms: histogram.percentile(99) / 1e6, perSecond, utilization }
}

/** The median time in milliseconds of reading a small file while `work` goes on for `ms`. */
export async function readFileDuring(folder, work, atOnce, ms) {
  const file = path.join(folder, 'small.txt')
  writeFileSync(file, 'read me')
  const going = keepGoing(work, atOnce)
  await sleep(ms / 4)
  const times = []
  for (const end = performance.now() + ms; performance.now() < end; ) {
    const start = performance.now()
    await readFile(file)
    times.push(performance.now() - start)
    // One at a time, as a server's own reads come between its requests.
    await sleep(1)
  }
  await going.stop()
  return median(times)
}
