/** What a dashboard must hold to for Grafana to show it, beyond the types of its SDK: places, numbers, variables, units. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { CATALOGUE } from '../src/exporter/catalogue.fixture.ts'
import { metricNames } from './promql.ts'

const FOLDER = fileURLToPath(new URL('../grafana/dashboards/', import.meta.url))
const COLUMNS = 24
/** Those of Grafana's units that we use; another one has to be looked up there first, because a wrong one is shown as it is written. */
const UNITS = new Set(['none', 'sci', 'percent', 'percentunit', 'bytes', 'mbytes', 's', 'celsius', 'watt', 'kwatth'])
const TRANSFORMATIONS = new Set(['merge', 'organize'])
/** What Grafana itself puts in. */
const BUILT_IN = new Set(['__rate_interval', '__range', '__interval'])
/** Labels that Prometheus, its rules and its histograms add to ours. */
const ADDED_LABELS = ['instance', 'job', 'le', 'alertname', 'alertstate', 'severity', 'detector', 'state']

interface Target {
  readonly refId: string
  readonly expr: string
  readonly legendFormat?: string
  readonly datasource?: { readonly type: string; readonly uid: string }
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly Target[]
  readonly transformations?: readonly { readonly id: string }[]
  readonly fieldConfig?: {
    readonly defaults: {
      readonly unit?: string
      readonly min?: number
      readonly max?: number
      readonly thresholds?: { readonly mode: string; readonly steps: readonly { readonly value: number | null; readonly color: string }[] }
    }
  }
}

interface Dashboard {
  readonly id: null
  readonly uid: string
  readonly schemaVersion: number
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string; readonly definition?: string }[] }
}

const boards = readdirSync(FOLDER).map((name) => ({ name, board: JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Dashboard }))
const LABELS = new Set([
  ...ADDED_LABELS,
  ...CATALOGUE.flatMap(({ labels, metrics }) => [...labels, ...metrics.flatMap((one) => one.labels)]),
])

describe.each(boards)('$name', ({ board }) => {
  const shown = board.panels.filter(({ type }) => type !== 'row')

  it('can be imported anywhere: no number of its own database, nothing to be asked for, a schema that is known', () => {
    expect(board.id).toBe(null)
    expect(board).not.toHaveProperty('__inputs')
    expect(board.uid).toMatch(/^[a-zA-Z0-9_-]{1,40}$/)
    expect(board.schemaVersion).toBeGreaterThanOrEqual(36)
  })

  it('numbers its panels, each once', () => {
    const ids = board.panels.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.every((id) => Number.isInteger(id) && id > 0)).toBe(true)
  })

  it('has no panel over another, and none beyond the edge', () => {
    const taken = new Map<string, string>()
    const wrong: string[] = []
    for (const { title, gridPos } of board.panels) {
      const { x, y, w, h } = gridPos
      if (x < 0 || y < 0 || w < 1 || h < 1 || x + w > COLUMNS) wrong.push(`${title} is at ${JSON.stringify(gridPos)}`)
      for (let column = x; column < x + w; column++)
        for (let line = y; line < y + h; line++) {
          const other = taken.get(`${column} ${line}`)
          if (other !== undefined) wrong.push(`${title} lies over ${other}`)
          taken.set(`${column} ${line}`, title)
        }
    }
    expect([...new Set(wrong)]).toEqual([])
  })

  it('asks something in every panel, of the chosen data source alone, and says what is seen', () => {
    for (const { title, description, targets = [] } of shown) {
      expect(title).not.toBe('')
      expect(description, title).toMatch(/\w{3}/)
      expect(targets.length, title).toBeGreaterThan(0)
      expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length)
      for (const { expr, datasource } of targets) {
        expect(expr, title).not.toBe('')
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is Grafana's placeholder, not ours.
        expect(datasource, title).toEqual({ type: 'prometheus', uid: '${datasource}' })
      }
    }
  })

  it('uses the variables that it has, and each of them or another that depends on it', () => {
    const declared = board.templating.list.map(({ name }) => name)
    const used = (text: string) => [...text.matchAll(/\$\{?(\w+)/g)].map(([, name = '']) => name)
    const inQueries = shown.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => used(expr)))
    expect(inQueries.filter((name) => !declared.includes(name) && !BUILT_IN.has(name))).toEqual([])
    for (const [at, { name, definition = '' }] of board.templating.list.entries()) {
      // A variable can only depend on those before it.
      expect(
        used(definition).filter((one) => !declared.slice(0, at).includes(one)),
        name,
      ).toEqual([])
    }
    const alive = new Set(['datasource', ...inQueries, ...board.templating.list.flatMap(({ definition = '' }) => used(definition))])
    // The run is on every dashboard so that a choice is kept from one to the next.
    expect(declared.filter((name) => !alive.has(name) && name !== 'run' && name !== 'gpu')).toEqual([])
  })

  it('finds the values of its variables in what is published', () => {
    const published = new Set(CATALOGUE.flatMap(({ metrics }) => metrics.map(({ name }) => name)))
    for (const { name, type, definition = '' } of board.templating.list.filter(({ type: kind }) => kind === 'query')) {
      const [, expr = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(definition) ?? []
      expect(type, name).toBe('query')
      expect(metricNames(expr).every((one) => published.has(one)) && expr !== '', name).toBe(true)
      expect(LABELS, name).toContain(label)
    }
  })

  it('has units that there are, limits the right way round, and steps that rise', () => {
    for (const { title, fieldConfig, transformations = [] } of shown) {
      const { unit = 'none', min, max, thresholds } = fieldConfig?.defaults ?? {}
      expect(UNITS, title).toContain(unit)
      if (min !== undefined && max !== undefined) expect(min, title).toBeLessThan(max)
      const [first, ...rest] = thresholds?.steps.map(({ value }) => value) ?? []
      expect(first ?? null, title).toBe(null)
      expect(rest, title).toEqual([...rest].sort((a, b) => Number(a) - Number(b)))
      for (const { color } of thresholds?.steps ?? []) expect(color, title).toMatch(/^(green|yellow|orange|red|blue|transparent|text)$/)
      expect(
        transformations.map(({ id }) => id).filter((id) => !TRANSFORMATIONS.has(id)),
        title,
      ).toEqual([])
    }
  })

  it('names in its legends only labels that there are', () => {
    const names = shown.flatMap(({ targets = [] }) =>
      targets.flatMap(({ legendFormat = '' }) => [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]),
    )
    expect(names.map(([, label = '']) => label).filter((label) => !LABELS.has(label))).toEqual([])
  })
})
