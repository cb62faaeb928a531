import { cudaGather, DeviceArray } from 'cugather'

const array = await DeviceArray.from(Float32Array.of(10, 20, 30))
console.log(String(await cudaGather(array, Int32Array.of(2, 0, -1))))
array.dispose()
