// Tests run on each device that this machine is said to have: the CPU, and with
// CUGATHER_DEVICE=cuda the GPU as well. There, a GPU that is missing fails every one of them.

const test = require('ava')
const { cudaGather } = require('../../index.js')

const onCuda = /^cuda/.test(process.env.CUGATHER_DEVICE ?? '')
const devices = onCuda ? ['cpu', process.env.CUGATHER_DEVICE] : ['cpu']

/** Declares a test for each device; `gather` is `cudaGather` on that device. */
function onEachDevice(title, body) {
  for (const device of devices) {
    const gather = (source, index, options) => cudaGather(source, index, { device, ...options })
    test(`${title} [${device}]`, (t) => body(t, gather, device))
  }
}

module.exports = { devices, onCuda, onEachDevice }
