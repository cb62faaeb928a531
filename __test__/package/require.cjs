const { cudaGather } = require('cugather')

cudaGather(Float32Array.of(10, 20, 30), Int32Array.of(2, 0, -1)).then((result) =>
  console.log(String(result)),
)
