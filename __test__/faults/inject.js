// Runs in a process of its own, on the stand-in driver: makes driver calls fail, and checks after
// each that nothing is lost. Prints the number of faults; throws at the first thing that is wrong.
//
//   node inject.js steady SCENARIO     each call of each function in turn, errors that pass
//   node inject.js once FAULT          one fault at first use: {"scenario", "device", "name", "call",
//                                      "code", "sticky", "exit"} as JSON

const assert = require('node:assert/strict')
const { availableParallelism } = require('node:os')
const { cudaGather } = require('../../index.js')
const { f32, i32 } = require('../helpers/arrays.js')
const { sameBytes } = require('../helpers/assert.js')
const { model } = require('../helpers/model.js')
const { Control } = require('./control.js')
const { codesThatPass } = require('./errors.js')
const scenarios = require('./scenarios.js')

const control = Control.ofThisProcess()

/** Whether an error is one that the documentation names for this fault. */
function isDocumented(error, { code }) {
  if (error.code === 'ERR_CUDA_OUT_OF_MEMORY') return code === 2
  if (error.code === 'ERR_CUDA')
    return error.driverCode === code && typeof error.driverError === 'string'
  return error.code === 'ERR_CUDA_UNAVAILABLE' && error.message.includes(`(error ${code})`)
}

/**
 * What a promise gives, or undefined where it rejects as documented while `fault` is in force; for
 * what is no gather.
 */
const attemptUnder = (fault) => async (promise) => {
  const [{ value, reason }] = await Promise.allSettled([promise])
  if (reason) assert.ok(fault && isDocumented(reason, fault), `not documented: ${reason.stack}`)
  return value
}

/** A gather that must do as the model does or, while `fault` is in force, fail as documented. */
const stepOn = (device, fault) => {
  const step = async (source, index, options) => {
    const expected = model(source, index, options)
    const outcome = cudaGather(source, index, { device, ...options })
    const [{ value, reason }] = await Promise.allSettled([outcome])
    if (value) {
      assert.ok(expected.bytes, 'a gather that had to fail did not')
      assert.ok(sameBytes(value, expected.bytes), 'a wrong result')
    } else if (!(fault && isDocumented(reason, fault))) {
      assert.ok(expected.error, `not documented: ${reason.stack}`)
      const { code, position, index: at, length } = reason
      assert.deepEqual(
        { code, position, index: at, length },
        { code: 'ERR_OUT_OF_RANGE', ...expected.error },
      )
    }
    return reason
  }
  step.attempt = attemptUnder(fault)
  step.device = device
  return step
}

/** Once every promise has settled nothing runs any more: the caller may let its memory go. */
function checkSettled() {
  assert.equal(control.alive.pending, 0, 'work is left that nobody waited for')
}

/** What is alive must be what a device keeps: at most `blocks` blocks, and nothing besides. */
function checkAlive(blocks) {
  checkSettled()
  const alive = control.alive
  assert.equal(alive.contexts, alive.modules)
  // One for each lane, and three more for one that has a ring for large copies.
  const rings = (alive.events - alive.streams) / 3
  assert.ok(
    Number.isInteger(rings) && rings >= 0 && rings <= alive.streams,
    `${alive.events} events`,
  )
  // Pieces of a call have a lane each, and there is one thread a core to begin them.
  const most = 4 + availableParallelism()
  assert.ok(alive.streams <= most, `${alive.streams} lanes for ${most} threads`)
  assert.ok(alive.allocations <= blocks, `${alive.allocations} blocks, more than ${blocks}`)
  // One for each lane's answer, and what the pool keeps of staging and rings.
  const pinned = alive.pageLocked - alive.streams
  assert.ok(pinned >= 0 && pinned <= blocks, `${pinned} page-locked blocks, more than ${blocks}`)
}

/**
 * Blocks that a device keeps after a scenario, one call at a time: four for a gather, as many again
 * of another size. With several at once each of four lanes may have as many.
 */
const blocksOf = (name) => (/many|worker|page-locked|aborted/.test(name) ? 32 : 8)

async function steady(name) {
  const run = scenarios[name]
  // The device and its lanes are made before: their faults are those of the first use.
  await run(stepOn('cuda'))
  await run(stepOn('cuda'))
  let faults = 0
  const before = control.calls
  await run(stepOn('cuda'))
  const after = control.calls
  for (const called of Object.keys(after).filter((each) => after[each] > before[each])) {
    for (const code of codesThatPass(called)) {
      // Every call in turn, until the scenario ends without meeting the fault.
      for (let call = 1; ; call++) {
        const fault = { name: called, call, code }
        control.fail(fault)
        await run(stepOn('cuda', fault))
        const met = control.injected > 0
        control.failNothing()
        if (!met) break
        faults++
        try {
          checkSettled()
          assert.equal(await stepOn('cuda')(f32(1, 2, 3), i32(2, 0)), undefined)
          await run(stepOn('cuda'))
          globalThis.gc?.()
          checkAlive(blocksOf(name))
        } catch (error) {
          error.message = `${name}, ${JSON.stringify(fault)}: ${error.message}`
          throw error
        }
      }
    }
  }
  console.log(faults)
}

async function once(fault) {
  const { scenario, device, code, sticky, exit } = fault
  control.fail(fault)
  const running = scenarios[scenario](stepOn(device, fault))
  if (exit) {
    await new Promise((resolve) => setTimeout(resolve, exit.after))
    process.exit(exit.code)
  }
  await running
  const met = control.injected > 0
  control.failNothing()
  console.log(met ? 1 : 0)
  if (!met) return
  checkSettled()

  // Whoever names no device gets the right answer, on the CPU if need be.
  assert.equal(await stepOn(undefined)(f32(1, 2, 3), i32(2, 0)), undefined)
  // A device named outright works, or says again why it does not: one reason, not one a call.
  const again = [1, 2].map(() => stepOn('cuda', fault)(f32(1, 2, 3), i32(2, 0)))
  const [first, second] = await Promise.all(again)
  assert.equal(first?.message, second?.message)
  if (first) assert.equal(first.code, 'ERR_CUDA_UNAVAILABLE', first.stack)
  if (sticky) assert.match(first.message, /was lost to an earlier error|not usable: cu\w+ failed/)
  if (code === 2 && !sticky) assert.equal(first, undefined, 'want of memory was taken for final')
  if (!sticky) checkAlive(32)
}

const [kind, what] = process.argv.slice(2)
if (kind === 'steady') steady(what)
else once(JSON.parse(what))
