// Links from one page of this repository to another: the file has to be there, and so has the heading.

import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** Names of a page's places, as GitHub makes them: of its headings, and of its `<a id>`. */
function anchorsOf(file) {
  const text = readFileSync(file, 'utf8').replace(/^```[\s\S]*?^```/gm, '')
  const anchors = new Set(Array.from(text.matchAll(/<a id="([^"]+)"/g), ([, id]) => id))
  const times = new Map()
  for (const [, heading] of text.matchAll(/^#+ (.*)$/gm)) {
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
    const before = times.get(slug) ?? 0
    times.set(slug, before + 1)
    anchors.add(before > 0 ? `${slug}-${before}` : slug)
  }
  return anchors
}

/** Links of `page` that lead nowhere, as sentences. Those to other hosts are not followed. */
export function brokenLinks(root, page) {
  const from = path.join(root, page)
  const text = readFileSync(from, 'utf8').replace(/^```[\s\S]*?^```/gm, '')
  const broken = []
  for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue
    const [name, anchor] = target.split('#')
    const to = name ? path.join(path.dirname(from), name) : from
    if (!existsSync(to)) broken.push(`${page}: there is no ${name}`)
    else if (anchor && !anchorsOf(to).has(anchor)) {
      broken.push(`${page}: there is no heading #${anchor} in ${name || page}`)
    }
  }
  return broken
}
