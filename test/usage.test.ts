/** Usage through the real program: counted, killed, counted on, asked by command and by route; and on recordings of real GPUs. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openForReading } from '../src/agent/detect-recording.ts'
import { countRecording } from '../src/agent/usage-recording.ts'
import type { GpuSample } from '../src/core/model.ts'
import { usageRoute } from '../src/usage/routes.ts'
import type { Sum } from '../src/usage/row.ts'
import type { UsageSummary } from '../src/usage/summary.ts'
import { FIXTURES, RunningAgent, run, temporaryFolder, until } from './program.ts'

const DEMO = ['--source', 'demo', '--demo-gpus', '2', '--interval', '0.2']

async function startAgent(logDir: string): Promise<RunningAgent> {
  const agent = await RunningAgent.start(DEMO, {}, logDir)
  onTestFinished(() => void agent.stop('SIGKILL'))
  return agent
}

/** By user. */
async function counters(agent: RunningAgent): Promise<ReadonlyMap<string, number>> {
  const lines = (await agent.text('/metrics')).matchAll(/^gpuwarden_user_gpu_seconds_total\{user="(\w+)",simulated="true"\} (\S+)$/gm)
  return new Map([...lines].map(([, user = '', value]) => [user, Number(value)]))
}

describe('the agent', () => {
  it('counts on after kill -9, with counters that never fall and an answer of its schema', { timeout: 120_000 }, async () => {
    const dir = temporaryFolder()
    const first = await startAgent(dir)
    const before = await until('use is on disk', async () => {
      const found = await counters(first)
      return found.size > 0 && existsSync(join(dir, 'usage', 'open.ndjson')) && found
    })
    await first.stop('SIGKILL')
    const second = await startAgent(dir)
    const after = await until('the counters are back', async () => {
      const found = await counters(second)
      return found.size > 0 && found
    })
    for (const [user, seconds] of before) expect(after.get(user) ?? 0).toBeGreaterThanOrEqual(seconds)
    const answer = await second.get<UsageSummary>('/api/v1/usage?by=user&from=-1h')
    expect(usageRoute(null, Date.now).answer.safeParse(answer).error).toBeUndefined()
    expect(answer).toMatchObject({ by: 'user', simulated: true, hasOther: false })
    const sum = answer.groups.reduce((total, { gpuHours }) => total + gpuHours, 0)
    expect(sum).toBeCloseTo(answer.total.gpuHours, 9)
    expect(await second.text('/api/v1/usage?format=csv&by=gpu')).toMatch(/^gpu,label,users,simulated,gpu_hours,free_hours,/)
    expect(await second.get('/api/v1/usage?from=tomorrow')).toMatchObject({ error: { code: 'invalid_time' } })
    const { code } = await second.stop()
    expect(code).toBe(0)

    const { stdout } = await run(['usage', '--log-dir', dir, '--json'])
    const asked = JSON.parse(stdout) as UsageSummary
    expect(asked.total.gpuHours).toBeGreaterThanOrEqual(answer.total.gpuHours)
    const table = await run(['usage', '--log-dir', dir, '--by', 'gpu'])
    expect(table.stdout).toMatch(/SIMULATED/)
    for (const line of table.stdout.split('\n').slice(3)) expect(line.length).toBeLessThanOrEqual(80)
  })

  it('says what is wrong with a question', async () => {
    const nothing = await run(['usage', '--log-dir', temporaryFolder(), '--by', 'day'])
    expect([nothing.code, nothing.stderr]).toEqual([3, expect.stringMatching(/no usage was counted there/)])
    const wrong = await run(['usage', '--by', 'week'])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/--by: expected one of user, job, run, gpu, day; got "week"/)])
    const both = await run(['usage', '--json', '--csv'])
    expect(both.code).toBe(2)
  })

  it('documents its route', () => {
    expect(readFileSync(new URL('../docs/http-api.md', import.meta.url), 'utf8')).toContain('`/api/v1/usage`')
  })
})

describe('a recording of a real GPU', () => {
  const GAP_MS = 10_000

  it.each(['healthy', 'intruder', 'leak_sawtooth', 'stall'])('%s: users and nobody together have what the device did', async (name) => {
    const path = join(FIXTURES, 'traces', name)
    const rows = await countRecording(await openForReading(path), [], 1000)
    const device = { gpuSeconds: 0, busySeconds: 0, energyJoules: 0, memoryByteSeconds: 0 }
    const last = new Map<string, number>()
    for await (const { samples } of await openForReading(path))
      for (const sample of samples as GpuSample[]) {
        if (sample.kind !== 'gpu') continue
        const seconds = (sample.at - (last.get(sample.gpu) ?? Number.NaN)) / 1000
        last.set(sample.gpu, sample.at)
        if (!(seconds > 0 && seconds <= GAP_MS / 1000) || sample.state !== 'ok') continue
        device.gpuSeconds += seconds
        device.busySeconds += seconds * (sample.utilizationRatio ?? 0)
        device.energyJoules += seconds * (sample.powerWatts ?? 0)
        device.memoryByteSeconds += seconds * (sample.memoryUsedBytes ?? 0)
      }
    expect(device.gpuSeconds).toBeGreaterThan(10)
    for (const [sum, truth] of Object.entries(device) as [Sum, number][])
      expect(rows.reduce((total, row) => total + row[sum], 0) / truth).toBeCloseTo(1, 6)
    expect(rows.some(({ user }) => user !== 'nobody')).toBe(true)
  })
})
