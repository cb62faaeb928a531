// Where the library types have Float16Array, a source of that class gives that class.

import { cudaGather } from '../../index.js'

const half: Promise<Float16Array> = cudaGather(new Float16Array(1), new Int8Array(1))
// @ts-expect-error a Float16Array is no Float32Array
const single: Promise<Float32Array> = cudaGather(new Float16Array(1), new Int8Array(1))

export { half, single }
