// The program, unbundled: node cli/run.mjs doctor

import { createRequire } from 'node:module'
import { main } from './main.mjs'

const require = createRequire(import.meta.url)
const { version } = require('../package.json')
main(process.argv.slice(2), { load: () => require('../index.js'), version })
