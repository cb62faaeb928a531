// npm run docs:api [-- --check]: makes docs/api.md out of the comments in index.d.ts and binding.d.ts, by TypeDoc;
// with --check, fails where the committed one is not that. TypeDoc does not work with TypeScript 7, so it is installed
// apart, with a TypeScript of its own, in scripts/docs-api/.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const tool = path.join(root, 'scripts', 'docs-api')
const page = path.join(root, 'docs', 'api.md')

const HEAD = `# API

Made by \`npm run docs:api\` out of the comments in the sources: don't edit it here. The other pages of
[docs](README.md) say when to use what.

`

function generate() {
  const installed = path.join(tool, 'node_modules', '.package-lock.json')
  if (!existsSync(installed)) {
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: tool, stdio: 'inherit' })
  }
  const folder = mkdtempSync(path.join(tmpdir(), 'cugather-api-'))
  try {
    const typedoc = path.join(tool, 'node_modules', 'typedoc', 'bin', 'typedoc')
    const options = ['--logLevel', 'Warn', '--out', folder]
    execFileSync(process.execPath, [typedoc, ...options], { cwd: tool, stdio: 'inherit' })
    return readFileSync(path.join(folder, 'README.md'), 'utf8')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * Without its own title, without the property that is there for the types alone, and with the name of a type that
 * TypeDoc writes out in full.
 */
function dressed(text) {
  const inCode = /O extends\s+\| Int8Array<[^=]*?BigUint64Array<ArrayBufferLike> = /g
  const inTable = /`O` \*extends\* (\\\| `\w+Array`\\<`ArrayBufferLike`\\> ?)+\|/g
  return (
    HEAD +
    text
      .replace(/^# .*\n+/, '')
      .replace(/(<a id="elements"><\/a>\n\n)?##### \\\[elements\\\]\n[^#]*?(?=<a id|#)/, '')
      .replace(inCode, 'O extends SameClass<S> = ')
      .replace(inTable, '`O` *extends* [`SameClass`](#sameclass)\\<`S`\\> |')
  )
}

const made = dressed(generate())
if (!process.argv.includes('--check')) {
  writeFileSync(page, made)
} else if (!existsSync(page) || readFileSync(page, 'utf8') !== made) {
  console.error('docs/api.md is not what the comments say: run npm run docs:api and commit it.')
  process.exit(1)
} else {
  console.log('docs/api.md is current')
}
