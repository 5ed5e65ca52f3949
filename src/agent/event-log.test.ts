import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { HubEvent } from '../core/kinds.ts'
import type { Finding, Run } from '../core/model.ts'
import { EventLog } from './event-log.ts'
import { openLog } from './log.ts'

const AT = 1_760_000_000_000
const finding = (parts: Partial<Finding> & { run?: string; gpu?: string }): HubEvent => {
  const { run = null, gpu = null, ...more } = parts
  const subject = { host: 'box', gpu, gpuIndex: null, pid: null, user: null, run, rank: null }
  const made = {
    fingerprint: 'f',
    detector: 'stall',
    severity: 'warning',
    state: 'active',
    provenance: 'live',
    at: AT,
    message: 'it stands',
  }
  return { type: 'finding', finding: { ...made, subject, ...more } as Finding }
}
const run = (parts: Partial<Run>): HubEvent => ({
  type: 'run',
  run: { id: 'r1', name: 'llama', user: 'ada', endedAt: null, outcome: null, ending: null, ...parts } as Run,
})

it('has a line for each event of the hardware, each beginning and each end, with the correlation id of the run', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-event-log-'))
  const opened = openLog({ dir, level: 'info', stderr: false, maxBytes: 1e6, runId: 'own' })
  const log = new EventLog({ log: opened.log, correlationOf: (id) => (id === 'r1' ? 'given' : null) })
  const xid = { kind: 'event', at: AT, gpu: 'GPU-1', event: 'xid', code: 79, message: 'fell off the bus', origin: 'kmsg' } as const
  const tick = { seq: 1, at: AT, source: 'nvidia', provenance: 'live' as const, gpus: [], processes: [], host: null, events: [xid] }
  log.accept({ type: 'tick', tick })
  log.accept(run({}))
  log.accept(run({}))
  log.accept(finding({ run: 'r1' }))
  log.accept(finding({ run: 'r1', message: 'it stands, longer' }))
  log.accept(finding({ run: 'r1', severity: 'critical', message: 'worse' }))
  log.accept(finding({ run: 'r1', state: 'resolved', message: 'over' }))
  log.accept(finding({ run: 'r1', state: 'resolved', message: 'over' }))
  log.accept(run({ endedAt: AT, outcome: 'oom', ending: { message: 'CUDA out of memory\nmore' } as Run['ending'] }))
  log.accept(finding({ fingerprint: 'i', detector: 'intruder', gpu: 'GPU-1', provenance: 'simulated', message: 'mallory' }))
  await opened.close()
  const text = readFileSync(join(dir, 'gpu_monitor.log'), 'utf8')
  const lines = text.trim().split('\n')
  for (const line of lines) expect(line.match(/"correlation_id"/g)?.length).toBe(1)
  const said = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(said.map(({ level, correlation_id, msg }) => [level, correlation_id, msg])).toEqual([
    ['warn', 'own', 'fell off the bus'],
    ['info', 'given', 'run llama started'],
    ['warn', 'given', 'it stands'],
    ['warn', 'given', 'worse'],
    ['info', 'given', 'over'],
    ['warn', 'given', 'run llama ended (oom): CUDA out of memory'],
    ['warn', 'own', 'mallory'],
  ])
  expect(said[0]).toMatchObject({ event: 'xid', code: 79, gpu: 'GPU-1' })
  expect(said.at(-1)).toMatchObject({ finding: 'intruder', provenance: 'simulated' })
})
