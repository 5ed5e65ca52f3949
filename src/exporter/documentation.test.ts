import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { CATALOGUE, type CatalogueEntry } from './catalogue.fixture.ts'

const DOCUMENT = fileURLToPath(new URL('../../docs/metrics.md', import.meta.url))
const BEGIN = '<!-- tables: begin (written by UPDATE_GOLDEN=1 npx vitest run src/exporter) -->\n'
const END = '<!-- tables: end -->\n'

function table({ title, labels, metrics }: CatalogueEntry): string {
  const rows = metrics.map((metric) => {
    const names = [...labels, ...metric.labels].map((label) => `\`${label}\``).join(', ')
    return `| \`${metric.name}\` | ${metric.type} | ${metric.unit} | ${names} | ${metric.help} |\n`
  })
  return `### ${title}\n\n| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n${rows.join('')}`
}

const tables = `${BEGIN}\n${CATALOGUE.map(table).join('\n')}\n${END}`

function split(text: string): readonly [before: string, tables: string, after: string] {
  const begin = text.indexOf(BEGIN)
  const end = text.indexOf(END) + END.length
  if (begin < 0 || end < begin) throw new Error(`docs/metrics.md must have the lines ${BEGIN}and ${END}`)
  return [text.slice(0, begin), text.slice(begin, end), text.slice(end)]
}

/** The formatter aligns the columns of a table. */
const unpadded = (text: string) => text.replace(/ +/g, ' ').replace(/ ?-{3,} ?/g, '---')

describe('docs/metrics.md', () => {
  it('lists every metric as it is, and no other', () => {
    const [before, written, after] = split(readFileSync(DOCUMENT, 'utf8'))
    if (process.env.UPDATE_GOLDEN === '1' && unpadded(written) !== unpadded(tables)) writeFileSync(DOCUMENT, before + tables + after)
    expect(unpadded(split(readFileSync(DOCUMENT, 'utf8'))[1])).toBe(unpadded(tables))
  })

  it('mentions only metrics that exist', () => {
    const [before, , after] = split(readFileSync(DOCUMENT, 'utf8'))
    const known = new Set(CATALOGUE.flatMap(({ metrics }) => metrics.map(({ name }) => name)))
    const spoken = (before + after).match(/\b(?:gpu|gpuwarden|training|host|nvidia_smi|DCGM_FI)_[A-Za-z0-9_]+[a-zA-Z0-9]\b/g) ?? []
    expect(spoken.length).toBeGreaterThan(5)
    expect(spoken.filter((name) => !known.has(name) && !['nvidia_gpu_exporter', 'DCGM_FI_DRIVER_VERSION'].includes(name))).toEqual([])
  })

  it('has no name twice', () => {
    const names = CATALOGUE.flatMap(({ metrics }) => metrics.map(({ name }) => name))
    expect(names.length).toBe(new Set(names).size)
  })
})
