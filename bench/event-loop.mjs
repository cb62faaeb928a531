// What others feel of it: how late the event loop's timers are, and how long fs.readFile waits for one
// of libuv's threads.

import { writeFileSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from './measure.mjs'

/** Keeps `work` going until `stopped.now`, `atOnce` of it at a time. */
async function keepGoing(work, atOnce, stopped) {
  const one = async () => {
    while (!stopped.now) await work()
  }
  await Promise.all(Array.from({ length: atOnce }, one))
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

/** The 99th percentile of the event loop's delay in milliseconds while `work` goes on for `ms`. */
export async function delayDuring(work, atOnce, ms) {
  const stopped = { now: false }
  const going = work && keepGoing(work, atOnce, stopped)
  // The start, with its first touches, is no part of it.
  await sleep(ms / 4)
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  histogram.enable()
  await sleep(ms)
  histogram.disable()
  stopped.now = true
  await going
  return histogram.percentile(99) / 1e6
}

/** The median time in milliseconds of reading a small file while `work` goes on for `ms`. */
export async function readFileDuring(folder, work, atOnce, ms) {
  const file = path.join(folder, 'small.txt')
  writeFileSync(file, 'read me')
  const stopped = { now: false }
  const going = work && keepGoing(work, atOnce, stopped)
  await sleep(ms / 4)
  const times = []
  for (const end = performance.now() + ms; performance.now() < end; ) {
    const start = performance.now()
    await readFile(file)
    times.push(performance.now() - start)
    // One at a time, as a server's own reads come between its requests.
    await sleep(1)
  }
  stopped.now = true
  await going
  return median(times)
}
