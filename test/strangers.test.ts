/** Something else answers at the agent's address, such as a proxy or a wrong port: nothing counts as delivered. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AgentClient } from '../src/core/agent-client.ts'
import { deliverLeftSpools } from '../src/training/left-spools.ts'
import { TrainingMonitorCallback } from '../src/training/training-callback.ts'
import { RunningAgent, run, temporaryFolder, until } from './program.ts'

const PAGE = '<html>please log in</html>'
const acknowledgement = (parts: object) =>
  JSON.stringify({
    id: 'r1',
    run: 'r1',
    accepted: 20,
    duplicates: 0,
    rejected_count: 0,
    last_seq: {},
    rejected: [],
    ignored_metrics: [],
    ...parts,
  })

const STRANGERS: [name: string, status: number, body: string][] = [
  ['a page', 200, PAGE],
  ['an empty object', 200, '{}'],
  ['nothing', 200, ''],
  ['no content', 204, ''],
  ['a refusal that is not of an agent', 400, PAGE],
  ['too large, says a proxy', 413, PAGE],
  ['an acknowledgement of another run', 200, acknowledgement({ id: 'r2', run: 'r2' })],
  ['an acknowledgement of fewer steps', 200, acknowledgement({ accepted: 19 })],
  ['an acknowledgement of more steps', 200, acknowledgement({ duplicates: 5 })],
  ['counts that are no numbers', 200, acknowledgement({ accepted: '20' })],
  ['negative counts', 200, acknowledgement({ accepted: 40, duplicates: -20 })],
]

async function stranger(status: number, body: string, port = 0): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status, { server: 'captive/1.0' }).end(body))
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const close = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  onTestFinished(close)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

const stepsIn = (spool: string) =>
  readdirSync(spool)
    .flatMap((name) => readFileSync(join(spool, name), 'utf8').trimEnd().split('\n'))
    .flatMap((line) => (JSON.parse(line) as { step?: number }).step ?? [])

describe.each(STRANGERS)('%s', (_, status, body) => {
  it('is no acknowledgement for the callback: steps and end wait in the spool', async () => {
    const { url } = await stranger(status, body)
    const spool = temporaryFolder()
    const warnings: string[] = []
    const note = (warning: Error) => void warnings.push(warning.message)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const callback = new TrainingMonitorCallback({ runId: 'r1', name: 'r1', url, spool })
    callback.onTrainBegin()
    for (let step = 1; step <= 20; step++) callback.onStepEnd({ step, loss: 1 })
    await callback.flush()
    await callback.onTrainEnd()
    expect([callback.delivered, callback.dropped, callback.spooled]).toEqual([0, 0, 20])
    expect(stepsIn(spool)).toEqual(Array.from({ length: 20 }, (_value, index) => index + 1))
    expect(callback.lastProblem).toContain(`status ${status} from captive/1.0`)
    expect(warnings).toEqual([expect.stringMatching(/is not a gpuwarden agent.*captive\/1\.0/)])
  })

  it('is no acknowledgement for a spool that was left: it stays as it is', async () => {
    const { url } = await stranger(status, body)
    const spool = temporaryFolder()
    mkdirSync(spool, { recursive: true })
    const head = JSON.stringify({ run: { id: 'r1', name: 'r1' }, url, format: 1, process: { pid: 2 ** 22 + 1, start: 1 } })
    const lines = Array.from({ length: 20 }, (_value, index) => JSON.stringify({ seq: index + 1, rank: 0, step: index + 1 }))
    writeFileSync(join(spool, 'r1.rank0.1.jsonl'), `${[head, ...lines, '{"end": {"outcome": "success"}}'].join('\n')}\n`)
    expect(await deliverLeftSpools(spool, new AgentClient({ url, token: null }))).toBe(0)
    expect(readdirSync(spool)).toEqual(['r1.rank0.1.jsonl'])
  })
})

describe('an agent', () => {
  it('names the run in its acknowledgement, so that what a stranger did not take arrives later', async () => {
    const { url, close } = await stranger(200, '{}')
    const spool = temporaryFolder()
    const callback = new TrainingMonitorCallback({ name: 'late', url, spool })
    callback.onTrainBegin()
    for (let step = 1; step <= 50; step++) callback.onStepEnd({ step, loss: 1 })
    await until('they wait', () => callback.spooled === 50)
    await close()
    const agent = await RunningAgent.start(['--source', 'demo', '--port', new URL(url).port])
    onTestFinished(async () => void (await agent.stop('SIGKILL')))
    await until('all are delivered', () => callback.delivered === 50)
    await callback.onTrainEnd()
    expect(await agent.get(`/api/v1/runs/${callback.runId}`)).toMatchObject({ outcome: 'success', training: { steps: 50 } })
    const posted = await fetch(`${agent.url}/api/v1/runs/${callback.runId}/steps`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: '{"seq":1,"step":1}\n',
    })
    expect(await posted.json()).toMatchObject({ run: callback.runId })
  })

  it('is asked again by gpuwarden import when its answer is no acknowledgement', async () => {
    const { url } = await stranger(200, JSON.stringify({ status: 'ok', sources: [] }))
    const spool = temporaryFolder()
    const file = join(spool, 'r1.jsonl')
    writeFileSync(file, `${JSON.stringify({ run: { id: 'r1', name: 'r1' }, url, format: 1 })}\n{"seq":1,"step":1}\n`)
    const { code, stderr } = await run(['import', file, '--port', new URL(url).port], {})
    expect(stderr).toContain('is not a gpuwarden agent')
    expect(code).toBe(1)
    expect(readdirSync(spool)).toEqual(['r1.jsonl'])
  })
})
