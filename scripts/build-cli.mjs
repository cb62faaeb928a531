// Bundles cli/ and all that it needs into cli.js, the program that the package ships: so the package
// depends on nothing. Run before packing.

import { statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const outfile = path.join(root, 'cli.js')
await build({
  stdin: {
    contents: `
      import { main } from './cli/main.mjs'
      const { version } = require('./package.json')
      main(process.argv.slice(2), { load: () => require('./index.js'), version })`,
    resolveDir: root,
  },
  outfile,
  bundle: true,
  minify: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  external: ['./index.js', './package.json'],
  // Without the warnings for those who write charts.
  define: { 'process.env.NODE_ENV': '"production"' },
  banner: { js: '#!/usr/bin/env node' },
  legalComments: 'eof',
})
console.log(`cli.js: ${Math.round(statSync(outfile).size / 1024)} KiB`)
