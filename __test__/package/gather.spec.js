const { cudaGather } = require('cugather')

test('gathers, with the classes of the context that Jest makes', async () => {
  const source = Float32Array.of(10, 20, 30)
  const result = await cudaGather(source, Int32Array.of(2, 0, -1))
  expect(result).toBeInstanceOf(Float32Array)
  expect(result).toEqual(Float32Array.of(30, 10, 30))
  await expect(cudaGather(source, Int32Array.of(3))).rejects.toThrow(RangeError)
})
