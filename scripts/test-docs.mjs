// npm run test:docs [-- FILE...]: runs every ```js block of README.md and the pages beside it and in docs/, each in
// a process of its own and with `cugather` meaning this checkout.
//
// - A block with an `import` is a module; any other is CommonJS in an async function, so that it can use await.
// - `// => VALUE`, at the end of a line or on the lines below a statement, says what util.inspect gives of that line's
//   expression, or of the constant that the statement declares; white space doesn't count. Further lines of a value
//   begin with `//    `. A wrong value fails, and so does a block that throws, prints to stderr, never ends, or ends
//   without having come to every value.
// - ```js node>=24 is run by that Node, from the npm package `node`, where this one is older.
// - docs/errors.md has to have every `code` that the sources give an error.
// - Links from page to page have to lead somewhere.
// - ```ts blocks are signatures, and api.md is generated: both stand for the types, which `npm test` checks. ```sh and
//   ```python blocks are not run.

import { execFile, execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { brokenLinks } from './docs-links.mjs'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const checker = path.join(root, 'scripts', 'test-docs-check.cjs')
const KINDS = ['js', 'ts', 'sh', 'python']
const AT_ONCE = 2
const TIMEOUT_MS = 60_000

/** The fenced blocks of a page: kind, wanted Node, first line's number and lines. */
function blocksOf(file) {
  const found = []
  let block
  for (const [i, line] of readFileSync(path.join(root, file), 'utf8').split('\n').entries()) {
    const fence = /^```(\w*) ?(.*)$/.exec(line)
    if (!fence) {
      block?.lines.push(line)
    } else if (block) {
      found.push(block)
      block = undefined
    } else {
      const [, kind, rest] = fence
      const node = /^node>=(\d+)$/.exec(rest)?.[1]
      const at = `${file}:${i + 1}`
      if (!KINDS.includes(kind) || (rest && !node)) {
        throw new Error(`${at}: a block of no known kind: ${line}`)
      }
      block = { at, file, kind, node: Number(node ?? 0), first: i + 2, lines: [] }
    }
  }
  if (block) throw new Error(`${block.at}: the block has no end`)
  return found
}

/** The program of a block: its lines, at the same numbers, with a check at each `// =>`. */
function programOf({ file, first, lines }) {
  const out = [...lines]
  let checks = 0
  for (const [i, line] of lines.entries()) {
    const mark = /^(.*?)\s*\/\/ => (.*)$/.exec(line)
    if (!mark) continue
    const [, code, start] = mark
    let value = start
    for (let j = i + 1; /^\s*\/\/ {4}/.test(lines[j] ?? ''); j++) value += lines[j].trim().slice(2)
    const at = `${file}:${first + i}`
    const check = (name) =>
      `$check(${name}, ${JSON.stringify(value.trim())}, ${JSON.stringify(at)})`
    if (code.trim()) {
      const name = /^\s*(?:const|let) (\w+) =/.exec(code)?.[1]
      out[i] = name ? `${code}; ${check(name)}` : `;${check(code.trim())}`
    } else {
      // The statement above: a constant, maybe over several lines, or one line.
      const indent = code.length ? code : /^\s*/.exec(line)[0]
      let j = i - 1
      while (j > 0 && /^\s*([)\]}]|$)/.test(lines[j])) j--
      while (j > 0 && /^\s*/.exec(lines[j])[0].length > indent.length) j--
      const name = /^\s*(?:const|let) (\w+) =/.exec(lines[j])?.[1]
      if (name) out[i] = `;${check(name)}`
      else if (j === i - 1) out[j] = `;${check(lines[j].trim())}`
      else throw new Error(`${at}: nothing above this value that it could be of`)
    }
    checks++
  }
  return { code: out.join('\n'), checks }
}

let newer
/** A Node of at least this line: this one, or the one of the npm package. */
function nodeOf(line) {
  if (Number(process.versions.node.split('.')[0]) >= line) return process.execPath
  newer ??= execFileSync('npx', ['--yes', '-p', `node@${line}`, '-c', 'node -p process.execPath'], {
    cwd: root,
    encoding: 'utf8',
  }).trim()
  return newer
}

function run(block) {
  const { code, checks } = programOf(block)
  const isModule = /^import /m.test(code)
  const program = isModule
    ? `${code}\n$done()`
    : `'use strict'; (async () => {${code}\n$done() })()`
  const args = [
    '--require',
    checker,
    `--input-type=${isModule ? 'module' : 'commonjs'}`,
    '--eval',
    program,
  ]
  return new Promise((resolve) => {
    execFile(
      nodeOf(block.node),
      args,
      {
        cwd: root,
        timeout: TIMEOUT_MS,
        env: { ...process.env, NO_COLOR: '1', DOCS_CHECKS: String(checks) },
      },
      (error, _stdout, stderr) => {
        const failure = error?.killed ? `not done after ${TIMEOUT_MS} ms` : stderr || error?.message
        resolve({ ...block, checks, failure })
      },
    )
  })
}

const pages = process.argv.slice(2)
if (pages.length === 0) {
  pages.push('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'examples/README.md')
  for (const name of readdirSync(path.join(root, 'docs')).sort()) {
    if (name.endsWith('.md')) pages.push(`docs/${name}`)
  }
}

/** Codes in the sources that docs/errors.md doesn't have. */
function undocumentedCodes() {
  const page = readFileSync(path.join(root, 'docs', 'errors.md'), 'utf8')
  const sources = ['index.js', 'load.js', 'src/binding/failure.rs']
  const codes = sources.flatMap(
    (file) =>
      readFileSync(path.join(root, file), 'utf8').match(/\b(ERR_[A-Z_]+|ABORT_ERR)\b/g) ?? [],
  )
  if (codes.length === 0) throw new Error('No source has a code')
  return [...new Set(codes)].filter((code) => !new RegExp(`\\b${code}\\b`).test(page))
}

const codes = undocumentedCodes()
for (const code of codes) console.error(`docs/errors.md: there is nothing about ${code}`)
const broken = pages.flatMap((page) => brokenLinks(root, page))
for (const link of broken) console.error(link)

const waiting = pages.flatMap(blocksOf).filter(({ kind }) => kind === 'js')
const done = []
const work = async () => {
  while (waiting.length > 0) done.push(await run(waiting.shift()))
}
await Promise.all(Array.from({ length: AT_ONCE }, work))

for (const page of pages) {
  const own = done.filter(({ file }) => file === page)
  const sum = own.reduce((total, { checks }) => total + checks, 0)
  if (own.length > 0) console.log(`${page}: ${own.length} blocks, ${sum} values`)
}
const failed = done.filter(({ failure }) => failure)
for (const { at, failure } of failed) console.error(`\n${at}: the block fails\n${failure}`)
if (failed.length > 0 || broken.length > 0 || codes.length > 0) process.exitCode = 1
console.log(`${done.length} blocks, ${failed.length} failed; ${broken.length} broken links`)
if (done.length === 0) throw new Error('There are no blocks to run')
