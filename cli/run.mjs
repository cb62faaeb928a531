// The program, unbundled: node cli/run.mjs doctor

import { createRequire } from 'node:module'
import { main } from './main.mjs'

main(process.argv.slice(2), () => createRequire(import.meta.url)('../index.js'))
