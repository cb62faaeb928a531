// The devices that this machine is said to have: the CPU, and with CUGATHER_DEVICE=cuda the GPU as
// well.

const onCuda = /^cuda/.test(process.env.CUGATHER_DEVICE ?? '')
const devices = onCuda ? ['cpu', process.env.CUGATHER_DEVICE] : ['cpu']

module.exports = { devices, onCuda }
