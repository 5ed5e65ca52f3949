/** The panels of public dashboards, asked of a real Prometheus that scrapes an agent on a fake NVML: a whole card, and one divided by MIG. */
import { spawn } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from '../fake-nvml/index.ts'
import { RunningAgent, until } from '../program.ts'
import { publicQueries } from '../public-dashboards.ts'
import { prometheus, query, type Server, whyMissing } from './servers.ts'

const missing = whyMissing('prometheus')
const ASKED = {
  job: 'gpuwarden',
  instance: 'fake',
  card: 'fa4e0000-0000-4000-8000-000000000000',
  divided: 'fa4e0000-0000-4000-8000-000000000001',
}

describe.skipIf(missing !== '')(`public dashboards${missing}`, () => {
  let agent: RunningAgent
  let server: Server
  // Somebody on the first card, so that there is a name to show.
  const worker = spawn('sleep', ['600'], { stdio: 'ignore' })
  const script = fakeNvmlScript({
    gpus: 2,
    fan: 40,
    fabric_state: 3,
    'gpu1.mig': 2,
    'gpu0.pids': [worker.pid ?? 0],
    event: ['0:8:79', '0:8:79', '0:8:31'],
  })

  beforeAll(async () => {
    const env = { GPUWARDEN_NVML: buildFakeNvml(), ...script.env }
    agent = await RunningAgent.start(['--source', 'nvidia', '--metrics', 'native,dcgm,nvidia_smi'], env)
    server = await prometheus({ targets: [{ target: new URL(agent.url).host, job: ASKED.job, instance: ASKED.instance }] })
    await until('the second page was scraped', async () => {
      const [count] = await query(server, 'min(count_over_time(nvidia_smi_energy_joules_total[1m]))')
      return Number(count?.value[1]) >= 3
    })
  }, 120_000)

  afterAll(async () => {
    worker.kill()
    await server?.stop()
    await agent?.stop()
    script.remove()
  })

  it.each(['12239', '14574', '25547'])(
    '%s: every panel has data, with the labels that it shows',
    async (dashboard) => {
      const queries = publicQueries(ASKED).filter((one) => one.dashboard === dashboard)
      let wrong: string[] = []
      const look = async () => {
        wrong = []
        for (const { panel, expr, shows } of queries) {
          const answer = await query(server, expr)
          const unlabelled = answer.filter(({ metric }) => shows.some((label) => !metric[label]))
          if (answer.length === 0) wrong.push(`${panel}: no series: ${expr}`)
          else if (unlabelled.length > 0) wrong.push(`${panel}: not all of ${shows.join(', ')} on ${JSON.stringify(unlabelled[0]?.metric)}`)
        }
        return wrong.length === 0
      }
      await until('every panel shows something', look, 30_000).catch(() => undefined)
      expect(wrong).toEqual([])
    },
    60_000,
  )

  it('a row of a table is one GPU, and says -1 for what a divided card does not report', async () => {
    const rows = (panel: string) => publicQueries(ASKED).find((one) => one.dashboard === '25547' && one.panel === panel)?.expr ?? ''
    const utilization = await query(server, rows('GPUs: Utilization'))
    expect(utilization.map(({ metric }) => metric.uuid).sort()).toEqual([ASKED.card, ASKED.divided])
    expect(utilization.find(({ metric }) => metric.uuid === ASKED.divided)?.value[1]).toBe('-1')
    for (const panel of ['GPUs: Power', 'GPUs: Throttling', 'GPUs: Temperature']) expect(await query(server, rows(panel))).toHaveLength(2)
    const xids = await query(server, 'nvidia_smi_xid_errors_total')
    expect(xids.map(({ metric, value }) => [metric.xid, value[1]]).sort()).toEqual([
      ['31', '1'],
      ['79', '2'],
    ])
  })
})
