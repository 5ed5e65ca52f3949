/** The rules in the repository are those that the generator makes, and they hold what they promise. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { DASHBOARDS } from '../grafana/generate/files.ts'
import { ALERTS, ruleFiles } from '../prometheus/generate/files.ts'
import { RECORDING } from '../prometheus/generate/recording.ts'
import { runbookName } from '../prometheus/generate/rule.ts'
import { COMMANDS } from '../src/commands/index.ts'
import { detectors } from '../src/detectors/index.ts'
import { THRESHOLDS } from '../src/detectors/thresholds.ts'
import { XID_MEANINGS } from '../src/detectors/xid-codes.ts'
import { CATALOGUE } from '../src/exporter/catalogue.fixture.ts'
import { STEP_SECONDS_BUCKETS } from '../src/exporter/training-metrics.ts'
import { run, temporaryFolder } from './program.ts'
import { metricNames } from './promql.ts'

const PROMETHEUS = fileURLToPath(new URL('../prometheus/', import.meta.url))
const RUNBOOKS = fileURLToPath(new URL('../docs/runbooks/', import.meta.url))
const ALL = ALERTS.flatMap(({ rules }) => rules)
const RECORDED = new Set(RECORDING.flatMap(({ rules }) => rules.map(({ record }) => record)))

const HISTOGRAM_PARTS = ['_bucket', '_sum', '_count']
const PUBLISHED = new Set(
  CATALOGUE.flatMap(({ metrics }) =>
    metrics.flatMap(({ name, type }) => (type === 'histogram' ? HISTOGRAM_PARTS.map((part) => name + part) : [name])),
  ),
)

describe('prometheus/', () => {
  it('is as npm run rules makes it', () => {
    for (const [name, text] of ruleFiles()) expect(readFileSync(join(PROMETHEUS, name), 'utf8'), name).toBe(text)
  })

  it('reads only what is published or recorded', () => {
    const expressions = [...ALL, ...RECORDING.flatMap(({ rules }) => rules)].map(({ expr }) => expr)
    const unknown = expressions.flatMap(metricNames).filter((name) => !PUBLISHED.has(name) && !RECORDED.has(name))
    expect(unknown).toEqual([])
    expect(new Set(expressions.flatMap(metricNames)).size).toBeGreaterThan(25)
  })

  it('names a detector of the agent for every alert that has one', () => {
    const known = new Set(detectors.map(({ name }) => name))
    expect(ALL.flatMap(({ detector }) => detector ?? []).filter((name) => !known.has(name))).toEqual([])
  })

  it('has the thresholds of the detectors', () => {
    const expr = (name: string) => ALL.find((alert) => alert.name === name)?.expr ?? ''
    expect(expr('GpuMemoryFull')).toContain(`>= ${THRESHOLDS.memory.fullRatio}`)
    expect(expr('GpuTemperatureHigh')).toContain(`>= -${THRESHOLDS.thermal.marginCelsius}`)
    expect(expr('TrainingGradientNormHigh')).toContain(`> ${THRESHOLDS.gradExplosion.norm}`)
    expect(expr('TrainingStraggler')).toContain(`> ${THRESHOLDS.straggler.ratio}`)
    expect(STEP_SECONDS_BUCKETS.length).toBeGreaterThan(5)
  })

  it('has a runbook for every alert, and no other', () => {
    expect(readdirSync(RUNBOOKS).sort()).toEqual(ALL.map(({ name }) => `${runbookName(name)}.md`).sort())
    for (const { name } of ALL) {
      const text = readFileSync(join(RUNBOOKS, `${runbookName(name)}.md`), 'utf8')
      expect(text).toMatch(new RegExp(`^# ${name}\\n\\n.+\\n\\n## Look\\n\\n- [\\s\\S]+\\n\\n## Do\\n\\n- `))
    }
  })

  it('mentions in its runbooks only commands, metrics, dashboards and XIDs that exist', () => {
    const names = readdirSync(RUNBOOKS)
    const texts = names.map((name) => readFileSync(join(RUNBOOKS, name), 'utf8')).join('\n')
    const commandNames = COMMANDS.map(({ name }) => name)
    expect(
      [...texts.matchAll(/`gpuwarden ([a-z-]+)/g)].map(([, name = '']) => name).filter((name) => !commandNames.includes(name)),
    ).toEqual([])
    const metrics = [...texts.matchAll(/`((?:gpu|gpuwarden|training)[_:][\w:]+)`/g)].map(([, name = '']) => name)
    expect(metrics.filter((name) => !PUBLISHED.has(name) && !RECORDED.has(name))).toEqual([])
    const titles = new Set(Object.values(DASHBOARDS).flatMap(({ title, panels = [] }) => [title, ...panels.map((panel) => panel.title)]))
    expect([...texts.matchAll(/\*([A-Z][^*\n]+)\*/g)].map(([, title = '']) => title).filter((title) => !titles.has(title))).toEqual([])
    expect(metrics.length).toBeGreaterThan(4)

    const hardware = readFileSync(join(RUNBOOKS, 'gpu-xid-hardware.md'), 'utf8')
    const explained = /label `xid`: (.+)/.exec(hardware)?.[1]?.match(/\d+/g) ?? []
    const critical = [...XID_MEANINGS].filter(([, { severity }]) => severity === 'critical').map(([code]) => code)
    expect(explained.map(Number).sort((a, b) => a - b)).toEqual(critical.sort((a, b) => a - b))
  })

  it('has no alert twice', () => {
    expect(new Set(ALL.map(({ name }) => name)).size).toBe(ALL.length)
  })
})

describe('gpuwarden rules export', () => {
  it('writes rules and runbooks, with the address of the runbooks', async () => {
    const folder = temporaryFolder()
    const { code, stderr } = await run(['rules', 'export', folder, '--runbook-url', 'https://wiki.example/gpu/'])
    expect(stderr).toBe('')
    expect(code).toBe(0)
    const text = readFileSync(join(folder, 'gpuwarden-alerts.yml'), 'utf8')
    expect(text).toContain('runbook_url: https://wiki.example/gpu/gpu-lost.md')
    expect(text).not.toContain('docs/runbooks')
    expect(readdirSync(join(folder, 'runbooks'))).toHaveLength(ALL.length)
  })

  it('says what it expected', async () => {
    const { code, stderr } = await run(['rules', 'import', '/tmp'])
    expect(code).toBe(2)
    expect(stderr).toContain('expected "export DIR"')
  })
})
