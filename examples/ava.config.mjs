// Apart from the suite: these need the packages that the examples show, which a GPU machine's bundle lacks.
export default {
  files: ['examples/**/*.test.js'],
  workerThreads: false,
  timeout: '2m',
}
