const { Worker } = require('node:worker_threads')

// Loaded by the worker alone.
new Worker(require.resolve('./require.cjs'))
