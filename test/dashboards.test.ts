/** The dashboards in the repository are those that the generator makes, fit Grafana's own types, and read what is published. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { DASHBOARDS, dashboardFiles } from '../grafana/generate/files.ts'
import { RECORDING } from '../prometheus/generate/recording.ts'
import { CATALOGUE } from '../src/exporter/catalogue.fixture.ts'
import { run, temporaryFolder } from './program.ts'
import { metricNames, panelQueries } from './promql.ts'

const FOLDER = fileURLToPath(new URL('../grafana/dashboards/', import.meta.url))
const ROOT = fileURLToPath(new URL('../', import.meta.url))
const names = readdirSync(FOLDER).sort()
const read = (name: string) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Dashboard

interface Dashboard {
  readonly uid: string
  readonly panels: readonly { readonly id: number; readonly type: string; readonly title: string; readonly datasource?: { uid: string } }[]
  readonly templating: { readonly list: readonly { readonly name: string }[] }
}

describe('grafana/dashboards/', () => {
  it('is as npm run grafana makes it', () => {
    expect(names).toEqual(Object.keys(DASHBOARDS).sort())
    for (const [name, text] of dashboardFiles()) expect(readFileSync(join(FOLDER, name), 'utf8'), name).toBe(text)
  })

  it('lets data source, host, GPU and run be chosen, and names no data source', () => {
    for (const name of names) {
      const text = readFileSync(join(FOLDER, name), 'utf8')
      expect(read(name).templating.list.map((one) => one.name)).toEqual(expect.arrayContaining(['datasource', 'host', 'gpu', 'run']))
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is Grafana's placeholder, not ours.
      expect([...text.matchAll(/"uid": "([^"]*)"/g)].map((match) => match[1]).filter((uid) => uid !== '${datasource}')).toEqual([
        read(name).uid,
      ])
    }
    expect(new Set(names.map((name) => read(name).uid)).size).toBe(names.length)
  })

  it('has what was promised of the training dashboard', () => {
    const panels = read('gpu-training-dashboard.json').panels.map(({ type, title }) => `${type}: ${title}`)
    for (const expected of [
      'timeseries: GPU utilization',
      'gauge: Temperature',
      'timeseries: Power draw',
      'timeseries: Memory',
      'timeseries: Loss',
      'timeseries: Learning rate',
      'heatmap: Step duration',
    ])
      expect(panels).toContain(expected)
  })

  it('reads only what is published or recorded', () => {
    const known = new Set([
      'ALERTS',
      ...RECORDING.flatMap(({ rules }) => rules.map(({ record }) => record)),
      ...CATALOGUE.flatMap(({ metrics }) => metrics.flatMap(({ name }) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`])),
    ])
    const queries = names.flatMap((name) => panelQueries(name, read(name)))
    expect(queries.length).toBeGreaterThan(60)
    expect(queries.flatMap(({ expr }) => metricNames(expr)).filter((name) => !known.has(name))).toEqual([])
  })

  it('fits the types of the Grafana SDK, down to the options of each panel', () => {
    const { status, stdout } = checkTypes(names.map((name) => [name, readFileSync(join(FOLDER, name), 'utf8')]))
    expect(stdout).toBe('')
    expect(status).toBe(0)
  })

  it('would notice what does not fit', () => {
    const [name = ''] = names
    const text = readFileSync(join(FOLDER, name), 'utf8')
    const { status, stdout } = checkTypes([[name, text.replace('"displayMode": "table"', '"displayMode": "carpet"')]])
    expect(status).not.toBe(0)
    expect(stdout).toContain('carpet')
  })
})

const PANEL_TYPES: Readonly<Record<string, string>> = {
  timeseries: 'timeseries',
  stat: 'stat',
  gauge: 'gauge',
  table: 'table',
  heatmap: 'heatmap',
}

/** Writes the JSON as TypeScript and asks the compiler: enums of the SDK become the texts that they stand for. */
function checkTypes(files: readonly (readonly [name: string, text: string])[]): { status: number | null; stdout: string } {
  const folder = mkdtempSync(join(ROOT, 'node_modules/.dashboard-types-'))
  try {
    const imports = Object.values(PANEL_TYPES).map((type) => `import type * as ${type} from '@grafana/grafana-foundation-sdk/${type}'`)
    const checks = files.flatMap(([, text], at) => {
      const { panels } = JSON.parse(text) as {
        panels: { type: string; options?: unknown; fieldConfig?: { defaults: { custom?: unknown } } }[]
      }
      return [
        `export const dashboard${at} = ${text.trim()} satisfies Plain<dashboard.Dashboard>`,
        ...panels
          .filter(({ type }) => type !== 'row')
          .map(({ type, options }, panel) => {
            const known = PANEL_TYPES[type]
            if (known === undefined) throw new Error(`no types are known for a panel of type ${type}`)
            return `export const options${at}_${panel} = ${JSON.stringify(options ?? {})} satisfies Plain<Partial<${known}.Options>>`
          }),
      ]
    })
    // Any kind of query stands for ours; what begins with _ is the SDK's own bookkeeping.
    const plain = [
      "import type * as prometheus from '@grafana/grafana-foundation-sdk/prometheus'",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is TypeScript to be written.
      'type Fields<T> = { [K in keyof T as K extends `_${string}` ? never : K]: Plain<T[K]> }',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is TypeScript to be written.
      'type Plain<T> = T extends string ? `${T}` : T extends readonly (infer E)[] ? Plain<E>[]',
      '  : T extends { _implementsDataqueryVariant(): void } ? Fields<prometheus.Dataquery> : T extends object ? Fields<T> : T',
    ].join('\n')
    const source = ["import type * as dashboard from '@grafana/grafana-foundation-sdk/dashboard'", ...imports, plain, ...checks].join('\n')
    writeFileSync(join(folder, 'check.ts'), source)
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
    const flags = [
      '--ignoreConfig',
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--types',
      'node',
    ]
    const { status, stdout } = spawnSync(process.execPath, [compiler, ...flags, join(folder, 'check.ts')], { encoding: 'utf8' })
    return { status, stdout }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('gpuwarden grafana export', () => {
  it('writes every dashboard', async () => {
    const folder = join(temporaryFolder(), 'new', 'folder')
    const { code, stdout } = await run(['grafana', 'export', folder])
    expect(code).toBe(0)
    expect(readdirSync(folder).sort()).toEqual(names)
    expect(stdout).toContain('gpu-training-dashboard.json')
  })
})
