/** Steps of training code in Node that no agent takes: they wait on the disk and arrive later, once. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { AgentClient } from '../src/core/agent-client.ts'
import { deliverLeftSpools } from '../src/training/left-spools.ts'
import { StepSpool } from '../src/training/step-spool.ts'
import { TrainingMonitorCallback } from '../src/training/training-callback.ts'
import { RunningAgent, run, temporaryFolder, until } from './program.ts'

const agents: RunningAgent[] = []
const ARGS = ['--source', 'demo', '--interval', '1']

async function startAgent(port = '0', logDir?: string): Promise<RunningAgent> {
  const agent = await RunningAgent.start([...ARGS, '--port', port], {}, logDir)
  agents.push(agent)
  return agent
}

afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.stop('SIGKILL')
})

const stepsOf = (agent: RunningAgent, id: string) =>
  agent
    .lines('training_metrics')
    .filter((line) => line.run === id)
    .map(({ step }) => Number(step))
    .sort((a, b) => a - b)
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

describe('TrainingMonitorCallback', () => {
  it('keeps steps on disk while the agent is dead, and brings all of them when it is back', async () => {
    const spool = temporaryFolder()
    const first = await startAgent()
    const callback = new TrainingMonitorCallback({ name: 'node', url: first.url, spool, queueSize: 50, totalSteps: 700 })
    callback.onTrainBegin()
    for (const step of upTo(100)) callback.onStepEnd({ step, loss: 1 / step })
    await until('the first steps are there', () => callback.delivered > 0)
    await first.stop('SIGKILL')
    for (let step = 101; step <= 600; step++) callback.onStepEnd({ step, loss: 1 / step })
    await until('they wait on the disk', () => callback.spooled >= 450)
    expect(callback.dropped).toBe(0)
    expect(readdirSync(spool)).toEqual([`${callback.runId}.rank0.${process.pid}.jsonl`])
    const second = await startAgent(new URL(first.url).port, first.logDir)
    for (let step = 601; step <= 700; step++) callback.onStepEnd({ step, loss: 1 / step })
    await until('all are delivered', () => callback.delivered >= 700)
    await callback.onTrainEnd()
    expect(readdirSync(spool)).toEqual([])
    expect(await second.get(`/api/v1/runs/${callback.runId}`)).toMatchObject({
      outcome: 'success',
      totalSteps: 700,
      training: { steps: 700 },
    })
    await second.stop()
    expect(stepsOf(second, callback.runId)).toEqual(upTo(700))
  })

  it('ends within a second without an agent; the end arrives when there is one', async () => {
    const spool = temporaryFolder()
    const probe = await startAgent()
    await probe.stop('SIGKILL')
    const callback = new TrainingMonitorCallback({ name: 'node', url: probe.url, spool })
    for (const step of upTo(30)) callback.onStepEnd({ step, loss: 1 })
    await callback.onTrainEnd('failed', 'ended by the test')
    expect([callback.delivered, callback.dropped, callback.spooled]).toEqual([0, 0, 30])
    const agent = await startAgent(new URL(probe.url).port, probe.logDir)
    await until(
      'the run has ended',
      async () => (await agent.get<{ outcome?: string }>(`/api/v1/runs/${callback.runId}`)).outcome === 'failed',
    )
    await until('the spool is gone', () => readdirSync(spool).length === 0)
    expect(await agent.get(`/api/v1/runs/${callback.runId}`)).toMatchObject({ message: 'ended by the test', training: { steps: 30 } })
  })

  it('leaves what a program could not send to the next one, and to gpuwarden import', async () => {
    const spool = temporaryFolder()
    const agent = await startAgent()
    const { port } = new URL(agent.url)
    await agent.stop('SIGKILL')
    const library = pathToFileURL(join(import.meta.dirname, '../dist/index.js')).href
    const script = (id: string) => `
      import { TrainingMonitorCallback } from ${JSON.stringify(library)}
      const callback = new TrainingMonitorCallback({ runId: '${id}', name: '${id}', url: ${JSON.stringify(agent.url)}, spool: ${JSON.stringify(spool)} })
      for (let step = 1; step <= 20; step++) callback.onStepEnd({ step, loss: 1 / step })
      ${id === 'ended' ? 'await callback.onTrainEnd()' : 'throw new Error("the training failed")'}`
    for (const id of ['ended', 'failed']) {
      const child = spawn(process.execPath, ['--input-type=module', '-e', script(id)], { stdio: 'ignore' })
      await new Promise((resolve) => child.once('close', resolve))
    }
    expect(readdirSync(spool).length).toBe(2)
    const next = await startAgent(port, agent.logDir)
    expect(await deliverLeftSpools(spool, new AgentClient({ url: next.url, token: null }))).toBe(40)
    expect(readdirSync(spool)).toEqual([])
    expect(await next.get('/api/v1/runs/ended')).toMatchObject({ outcome: 'success', training: { steps: 20 } })
    expect(await next.get('/api/v1/runs/failed')).toMatchObject({ outcome: null, training: { steps: 20 } })
  })
})

describe('a spool', () => {
  const head = { run: { id: 'r', name: 'r' }, url: 'http://a', format: 1, process: { pid: process.pid, start: 0 } }
  const folder = () => mkdtempSync(join(tmpdir(), 'gpuwarden-spool-'))
  const all = (spool: StepSpool) => {
    const lines: string[] = []
    while (!spool.isEmpty) {
      const read = spool.read(3, 200)
      if (read.lines.length === 0) break
      lines.push(...read.lines)
      spool.advance(read.next)
    }
    return lines
  }

  it('gives back what was put in, in order, and is gone then', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.array(
            fc.string({ maxLength: 20 }).map((text) => JSON.stringify(text)),
            { maxLength: 8 },
          ),
        ),
        (groups) => {
          const dir = folder()
          const spool = new StepSpool(dir, 'a', head)
          for (const group of groups) expect(spool.append(group)).toEqual({ kept: group.length, reason: null })
          expect(all(spool)).toEqual(groups.flat())
          if (groups.flat().length > 0) expect(readdirSync(dir)).toEqual([])
          spool.close()
          rmSync(dir, { recursive: true })
        },
      ),
      { numRuns: 50 },
    )
  })

  it('holds no more than it may, survives being imported under its hands, and says what is wrong with the disk', () => {
    const dir = folder()
    const size = Buffer.byteLength(JSON.stringify(head)) + 1
    const small = new StepSpool(dir, 'small', head, size + 10)
    expect(small.append(['1234', '1234', '1234'])).toMatchObject({ kept: 2, reason: expect.stringContaining('has reached') })
    expect(all(small)).toEqual(['1234', '1234'])
    const taken = new StepSpool(dir, 'taken', head)
    taken.append(['1', '2'])
    rmSync(join(dir, 'taken.jsonl'))
    taken.append(['3'])
    expect(readFileSync(join(dir, 'taken.jsonl'), 'utf8').trim().split('\n').slice(1)).toEqual(['1', '2', '3'])
    expect(all(taken)).toEqual(['1', '2', '3'])
    writeFileSync(join(dir, 'file'), '')
    expect(new StepSpool(join(dir, 'file', 'x'), 'a', head).append(['1'])).toMatchObject({
      kept: 0,
      reason: expect.stringMatching(/ENOTDIR|EEXIST/),
    })
    expect(new StepSpool(null, 'a', head).append(['1']).reason).toContain('GPUWARDEN_SPOOL=off')
  })

  it('of a living process, or for another agent, is left alone', async () => {
    const dir = folder()
    const spool = new StepSpool(dir, 'own', head)
    spool.append(['{"seq":1,"step":1}'])
    expect(await deliverLeftSpools(dir, new AgentClient({ url: 'http://a', token: null }))).toBe(0)
    expect(readdirSync(dir)).toEqual(['own.jsonl'])
  })

  it('that an earlier process left under the same name is continued', () => {
    const dir = folder()
    const longer = { ...head, run: { id: 'r', name: 'an earlier, longer name' } }
    writeFileSync(join(dir, 'a.jsonl'), `${JSON.stringify(longer)}\n{"seq":1}\n{"seq":2,"st`)
    const spool = new StepSpool(dir, 'a', head)
    expect(spool.append(['{"seq":3}'])).toEqual({ kept: 1, reason: null })
    expect(all(spool)).toEqual(['{"seq":1}', '{"seq":3}'])
  })

  it('with damaged or very long lines is delivered, and neither it nor a pipe holds others up', async () => {
    const dir = folder()
    const gone = JSON.stringify({ ...head, process: { pid: 2 ** 22 + 1, start: 1 } })
    const long = JSON.stringify({ seq: 2, text: 'x'.repeat(3 * 1024 * 1024) })
    writeFileSync(join(dir, 'a.jsonl'), `${gone}\n{"seq":1}\n${long}\n{"end": {"out\n{"seq":3}\n{"end": {"outcome": "success"}}\n{"se`)
    writeFileSync(join(dir, 'b.jsonl'), `${gone}\n{"seq":4}\n`)
    execFileSync('mkfifo', [join(dir, 'c.jsonl')])
    const got: string[] = []
    const ends: unknown[] = []
    const link = {
      url: 'http://a',
      async tryPost(path: string, body: unknown) {
        if (path.endsWith('/end')) ends.push(body)
        return { status: 200, code: null, body: { id: 'r' }, message: '' }
      },
      async tryPostLines(_path: string, lines: readonly string[]) {
        got.push(...lines.map((line) => line.slice(0, 9)))
        return { status: 200, code: null, body: { run: 'r', accepted: lines.length, duplicates: 0, rejected_count: 0 }, message: '' }
      },
    }
    expect(await deliverLeftSpools(dir, link as unknown as AgentClient)).toBe(4)
    expect([got, ends]).toEqual([['{"seq":1}', '{"seq":2,', '{"seq":3}', '{"seq":4}'], [{ outcome: 'success' }]])
    expect(readdirSync(dir)).toEqual(['c.jsonl'])
  })

  it('can be imported', async () => {
    const dir = folder()
    const spool = new StepSpool(dir, 'x', head)
    spool.append([JSON.stringify({ seq: 1, rank: 0, step: 1, loss: 1 }), JSON.stringify({ end: { outcome: 'success' } })])
    const ended = await run(['import', join(dir, 'x.jsonl'), '--log-dir', temporaryFolder(), '--port', '1'])
    expect([ended.code, ended.stdout]).toEqual([0, expect.stringContaining('1 new steps, 0 already known →')])
  })
})
