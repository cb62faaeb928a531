// Tests run on each device that this machine is said to have. A GPU that is said to be there and is
// not fails every one of its tests.

const test = require('ava')
const { cudaGather } = require('../../index.js')
const { devices } = require('./machine.js')

/** Declares a test for each device; `gather` is `cudaGather` on that device. */
function onEachDevice(title, body) {
  for (const device of devices) {
    const gather = (source, index, options) => cudaGather(source, index, { device, ...options })
    test(`${title} [${device}]`, (t) => body(t, gather, device))
  }
}

module.exports = { onEachDevice }
