// Parsed only where the runtime knows `using`: __test__/runtimes.test.js

const { DeviceArray } = require('../../index.js')

/** Gathers within a block, and gives what outlives it. */
module.exports = async (source, index) => {
  let outlived
  let result
  {
    using array = await DeviceArray.from(source)
    outlived = array
    result = await array.gather(index)
  }
  return { outlived, result }
}
