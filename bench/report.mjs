// What was measured, set against what it has to reach.

/** `{ of, value, limit, met }`: how many times as long as a peer; unknown where that was not measured. */
export function compare(of, ours, theirs, limit) {
  if (!(ours > 0) || !(theirs > 0)) return { of, value: null, limit, met: null }
  const value = ours / theirs
  return { of, value: Math.round(value * 1000) / 1000, limit, met: value <= limit }
}

/** One line for each comparison of each row, for people. */
export function lines(rows) {
  return rows.flatMap((row) => {
    const head = { row: row.name, device: row.device ?? '', ours: time(row.cugather) }
    if (row.error) return [{ ...head, verdict: `FAILED: ${row.error}` }]
    const missing = { ...head, verdict: row.reason ? `not measured: ${row.reason}` : '' }
    const compared = row.comparisons ?? []
    if (compared.length === 0) return [missing]
    return compared.map(({ of, value, limit, met }) => ({
      ...head,
      theirs: `${of} ${time(row.peers?.[of])}`.trim(),
      ratio: value === null ? '' : value.toFixed(3),
      limit: limit === undefined ? '' : `${limit}`,
      verdict: verdict(value, limit, met, row.peers?.[of]),
    }))
  })
}

function time(measured) {
  if (measured?.ms === undefined) return ''
  const { ms } = measured
  return ms < 0.1 ? `${(ms * 1000).toFixed(1)} us` : `${ms.toFixed(ms < 10 ? 3 : 1)} ms`
}

function verdict(value, limit, met, theirs) {
  if (met === null) return `not measured: ${theirs?.reason ?? 'there is nothing to compare with'}`
  if (limit === undefined) return ''
  return met ? 'met' : `missed by ${Math.round((value / limit - 1) * 100)} %`
}

const COLUMNS = ['row', 'device', 'ours', 'theirs', 'ratio', 'limit', 'verdict']

export function textTable(rows) {
  const table = [Object.fromEntries(COLUMNS.map((name) => [name, name])), ...lines(rows)]
  const cell = (line, name) => String(line[name] ?? '')
  const widths = COLUMNS.map((name) => Math.max(...table.map((line) => cell(line, name).length)))
  return table
    .map((line) =>
      COLUMNS.map((name, i) => cell(line, name).padEnd(widths[i]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function markdownTable({ machine, rows }) {
  const cells = (line) => `| ${COLUMNS.map((name) => line[name] ?? '').join(' | ')} |`
  return [
    `# ${machine.gpu ?? 'No GPU'}, ${machine.cpu}, ${machine.cores} cores`,
    '',
    'Medians, promise and all, unless a row says otherwise. `ratio` is cugather over the other.',
    '',
    Object.entries(machine.versions)
      .filter(([, version]) => version)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
    '',
    `| ${COLUMNS.join(' | ')} |`,
    `|${COLUMNS.map(() => ' --- |').join('')}`,
    ...lines(rows).map(cells),
    '',
  ].join('\n')
}

/** How many limits were met, were missed and could not be looked at; and how many rows failed. */
export function count(rows) {
  const verdicts = rows
    .flatMap((row) => row.comparisons ?? [])
    .filter(({ limit }) => limit !== undefined)
  return {
    met: verdicts.filter(({ met }) => met === true).length,
    missed: verdicts.filter(({ met }) => met === false).length,
    unknown: verdicts.filter(({ met }) => met === null).length,
    failed: rows.filter((row) => row.error).length,
  }
}
