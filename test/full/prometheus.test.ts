/** Prometheus and Alertmanager against two agents: every query of panels and rules gives data, alerts fire and end, restarts lose nothing. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ALERTS } from '../../prometheus/generate/files.ts'
import { RECORDING } from '../../prometheus/generate/recording.ts'
import { FIXTURES, RunningAgent, temporaryFolder, until } from '../program.ts'
import { filledIn, metricNames, panelQueries } from '../promql.ts'
import { alertmanager, freePort, prometheus, query, type Server, whyMissing } from './servers.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const RULES = ['gpuwarden-recording.yml', 'gpuwarden-alerts.yml'].map((name) => join(ROOT, 'prometheus/rules', name))
const DASHBOARDS = join(ROOT, 'grafana/dashboards')

/** Panels that show nothing in this test, and why that is right. */
const EMPTY_PANELS: Readonly<Record<string, string>> = {
  'Idle but held': 'no simulated GPU is idle for half an hour',
}

/** Metrics of rules that are not there in this test, and why that is right. */
const ABSENT_METRICS: Readonly<Record<string, string>> = {
  gpu_retired_pages_pending: 'only cards before the remapping of rows retire pages',
  training_run_end_timestamp_seconds: 'no run has ended',
}

const missing = whyMissing('prometheus', 'prometheus-alertmanager')

describe.skipIf(missing !== '')(`Prometheus and Alertmanager${missing}`, () => {
  let demo: RunningAgent
  let replay: RunningAgent
  let server: Server
  let alerts: Server
  let demoPort = 0
  const demoLogs = temporaryFolder()

  const startDemo = (scenario: string) =>
    RunningAgent.start(
      [
        '--port',
        String(demoPort),
        '--source',
        'demo',
        '--demo-scenario',
        scenario,
        '--demo-gpus',
        '6',
        '--metrics',
        'native,dcgm,nvidia_smi',
      ],
      {},
      demoLogs,
    )

  beforeAll(async () => {
    demoPort = await freePort()
    demo = await startDemo('all')
    replay = await RunningAgent.start(['--source', `replay:${FIXTURES}/traces/leak_graph`, '--speed', '1'])
    alerts = await alertmanager(join(ROOT, 'deploy/alertmanager/alertmanager.yml'))
    server = await prometheus({
      targets: [
        { target: `127.0.0.1:${demoPort}`, job: 'gpuwarden', instance: 'demo' },
        { target: new URL(replay.url).host, job: 'gpuwarden', instance: 'replay' },
      ],
      rules: RULES,
      alertmanager: alerts.url,
    })
  }, 120_000)

  afterAll(async () => {
    await server?.stop()
    await alerts?.stop()
    await demo?.stop()
    await replay?.stop()
  })

  it('scrapes both agents and evaluates every rule without a fault', async () => {
    await until('both agents are up', async () => (await query(server, 'up == 1')).length === 2)
    await until('every rule was evaluated', async () => {
      const { data } = await server.get<{ data: { groups: { rules: { name: string; health: string; lastError?: string }[] }[] } }>(
        '/api/v1/rules',
      )
      const rules = data.groups.flatMap((group) => group.rules)
      const wrong = rules.filter(({ health }) => health === 'err')
      expect(wrong.map(({ name, lastError }) => `${name}: ${lastError}`)).toEqual([])
      return rules.length > 40 && rules.every(({ health }) => health === 'ok')
    })
  })

  it('sends alerts to Alertmanager, with their texts', async () => {
    const firing = await until(
      'a GPU is lost and another too hot',
      async () => {
        const all = await alerts.get<{ labels: Record<string, string>; annotations: Record<string, string> }[]>('/api/v2/alerts')
        const names = new Set(all.map(({ labels }) => labels.alertname))
        return names.has('GpuLost') && names.has('GpuTemperatureCritical') ? all : null
      },
      180_000,
    )
    const lost = firing.find(({ labels }) => labels.alertname === 'GpuLost')
    expect(lost?.labels).toMatchObject({ severity: 'critical', simulated: 'true', instance: 'demo', state: 'lost' })
    expect(lost?.annotations.summary).toMatch(/^SIMULATED GPU \d/)
    expect(lost?.annotations.runbook_url).toContain('gpu-lost.md')
    for (const { annotations } of firing) expect(Object.values(annotations).join()).not.toMatch(/<error|%!|no value/)
  }, 200_000)

  it('finds data for every query of every panel', async () => {
    const queries = readdirSync(DASHBOARDS).flatMap((name) => panelQueries(name, JSON.parse(readFileSync(join(DASHBOARDS, name), 'utf8'))))
    let empty: string[] = []
    const look = async () => {
      empty = []
      for (const { dashboard, panel, expr } of queries) {
        const isEmpty = !(await hasHadData(server, filledIn(expr)))
        if (isEmpty !== (EMPTY_PANELS[panel] !== undefined))
          empty.push(`${dashboard}, ${panel} ${isEmpty ? 'is empty' : 'is no exception'}: ${filledIn(expr)}`)
      }
      return empty.length === 0
    }
    // Subqueries look once a minute, so that a minute must have passed.
    await until('every panel shows something', look, 120_000).catch(() => undefined)
    expect(empty).toEqual([])
    expect(queries.length).toBeGreaterThan(60)
  }, 300_000)

  it('finds values for every variable of every dashboard', async () => {
    const definitions = readdirSync(DASHBOARDS).flatMap((name) => {
      const { templating } = JSON.parse(readFileSync(join(DASHBOARDS, name), 'utf8')) as { templating: { list: { definition?: string }[] } }
      return templating.list.flatMap(({ definition }) => definition ?? [])
    })
    // As Grafana asks: the values of a label among the series that match.
    for (const definition of new Set(definitions)) {
      const [, series = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(definition) ?? []
      const { data } = await server.get<{ data: string[] }>(`/api/v1/label/${label}/values?match[]=${encodeURIComponent(filledIn(series))}`)
      expect(data, definition).not.toEqual([])
    }
    expect(new Set(definitions).size).toBeGreaterThanOrEqual(3)
  })

  it('finds data for every metric of every rule', async () => {
    const rules = [...ALERTS.flatMap(({ rules: all }) => all), ...RECORDING.flatMap(({ rules: all }) => all)]
    const names = [...new Set(rules.flatMap(({ expr }) => metricNames(expr)))]
    const absent: string[] = []
    for (const name of names) if ((await query(server, `last_over_time(${name}[10m])`)).length === 0) absent.push(name)
    expect(absent.sort()).toEqual(Object.keys(ABSENT_METRICS).sort())
    for (const { expr } of rules) await query(server, expr)
  })

  it('ends alerts when the problem is over, and keeps counting over a restart of the agent', async () => {
    const before = Number((await query(server, 'sum(gpuwarden_samples_total{instance="demo"})'))[0]?.value[1])
    await demo.stop()
    demo = await startDemo('healthy')
    // A counter that began anew is known as such: what was counted before is not lost.
    await until('the new agent is scraped and well', async () => {
      const [resets] = await query(server, 'max(resets(gpuwarden_samples_total{instance="demo"}[15m]))')
      return Number(resets?.value[1]) >= 1 && (await query(server, 'gpuwarden_gpu_up{instance="demo"} == 1')).length === 6
    })
    await until(
      'the alerts of GPUs have ended',
      async () => {
        const all = await alerts.get<{ labels: Record<string, string> }[]>('/api/v2/alerts')
        return !all.some(({ labels }) => ['GpuLost', 'GpuTemperatureCritical'].includes(labels.alertname ?? ''))
      },
      400_000,
    )
    expect((await query(server, 'ALERTS{alertname="GpuLost",alertstate="firing"}')).length).toBe(0)
    const [increase] = await query(server, 'sum(increase(gpuwarden_samples_total{instance="demo"}[15m]))')
    expect(Number(increase?.value[1])).toBeGreaterThan(before * 0.8)
  }, 420_000)

  it('keeps its series over a restart of Prometheus', async () => {
    const at = Math.floor(Date.now() / 1000) - 5
    const expr = 'sum by (instance) (gpu_memory_used_mb)'
    const before = await query(server, expr, at)
    await server.restart('/-/ready')
    expect(await query(server, expr, at)).toEqual(before)
    expect(before.length).toBeGreaterThan(0)
    await until('it scrapes again', async () => (await query(server, 'up{instance="demo"} == 1')).length === 1)
    const [steps] = await query(server, 'min(increase(gpuwarden_samples_total{instance="demo"}[5m]))')
    expect(Number(steps?.value[1])).toBeGreaterThanOrEqual(0)
  }, 120_000)
})

/** Whether the expression gave something at any of the last three minutes: what is over by now counts as well. */
async function hasHadData(server: Server, expr: string): Promise<boolean> {
  const now = Math.floor(Date.now() / 1000)
  for (const at of [now, now - 20, now - 45, now - 90]) if ((await query(server, expr, at)).length > 0) return true
  return false
}
