// What others feel of it: how late the event loop's timers are, and how long fs.readFile waits for one
// of libuv's threads.

import { writeFileSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { median } from './measure.mjs'

/** Keeps `work` going until `state.isOver`, `atOnce` of it at a time, and counts it. */
async function keepGoing(work, atOnce, state) {
  const one = async () => {
    while (!state.isOver) {
      await work()
      state.calls++
    }
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

/**
 * What `delayDuring` gives for so many new arrays a second that nobody writes to, of which `held` are
 * kept at a time: what V8 alone makes of as much to collect.
 */
export function delayDuringArrays(bytes, held, perSecond, ms) {
  const arrays = []
  const begun = performance.now()
  let made = 0
  const work = async () => {
    await turn()
    if (made < ((performance.now() - begun) * perSecond) / 1000)
      arrays[made++ % held] = new Uint8Array(bytes)
  }
  return delayDuring(work, 1, ms)
}

/**
 * The event loop's delay while `work` goes on for `ms`: its 99th percentile in milliseconds, and how
 * often a second `work` was done.
 */
export async function delayDuring(work, atOnce, ms) {
  const state = { isOver: false, calls: 0 }
  const going = work && keepGoing(work, atOnce, state)
  // The start, with its first touches, is no part of it.
  await sleep(ms / 4)
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  histogram.enable()
  const [begun, before] = [performance.now(), state.calls]
  await sleep(ms)
  histogram.disable()
  const perSecond = ((state.calls - before) * 1000) / (performance.now() - begun)
  state.isOver = true
  await going
  return { ms: histogram.percentile(99) / 1e6, perSecond }
}

/** The median time in milliseconds of reading a small file while `work` goes on for `ms`. */
export async function readFileDuring(folder, work, atOnce, ms) {
  const file = path.join(folder, 'small.txt')
  writeFileSync(file, 'read me')
  const state = { isOver: false, calls: 0 }
  const going = work && keepGoing(work, atOnce, state)
  await sleep(ms / 4)
  const times = []
  for (const end = performance.now() + ms; performance.now() < end; ) {
    const start = performance.now()
    await readFile(file)
    times.push(performance.now() - start)
    // One at a time, as a server's own reads come between its requests.
    await sleep(1)
  }
  state.isOver = true
  await going
  return median(times)
}
