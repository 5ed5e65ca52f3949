import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Log } from '../core/kinds.ts'
import type { Run } from '../core/model.ts'
import { isStillRunning, startTicksOf } from '../core/process-identity.ts'
import { runOf } from './routes.ts'
import { TRAINING_DEFAULTS } from './settings.ts'
import { createTraining, type Training } from './training.ts'

const ignore = () => undefined
const SILENT: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => SILENT }
const HOUR = 3_600_000
const PATIENT = { timeout: 20_000 }

const children: ChildProcess[] = []
const rooms: Training[] = []

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const room of rooms.splice(0)) await room.close()
})

/** A room with a clock that can be put forward. */
function world(dir: string | null = null, hours = 24, spoolFolder: string | null = null) {
  const clock = { aheadMs: 0 }
  const runs: Run[] = []
  const training = createTraining({
    hub: { receiveRun: (run) => void runs.push(run), receiveSteps: ignore },
    dir,
    log: SILENT,
    now: () => Date.now() + clock.aheadMs,
    spoolFolder,
    settings: { ...TRAINING_DEFAULTS, 'training.stale_hours': hours },
  })
  rooms.push(training)
  return { training, clock, runs }
}

function child(): ChildProcess & { pid: number } {
  const made = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  children.push(made)
  return made as ChildProcess & { pid: number }
}

function killed(victim: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    victim.once('exit', () => resolve())
    victim.kill('SIGKILL')
  })
}

const announce = (training: Training, extra: object) => training.postRun(runOf({ id: 'r1', name: 'demo', host: hostname(), ...extra }))
const step = (seq: number, t = Date.now()) => Buffer.from(JSON.stringify({ seq, step: seq, t, loss: 1 }))
const runIn = async (training: Training) => (await training.find('r1'))?.run

describe('a run that ends without a word', () => {
  it('is closed a minute after its process was killed, and opened again when a process reports', async () => {
    const { training, clock, runs } = world()
    const victim = child()
    await announce(training, { pid: victim.pid })
    await training.postSteps('r1', step(1))
    clock.aheadMs = 10 * 60_000
    expect(await training.closeSilentRuns()).toBe(0)
    await killed(victim)
    clock.aheadMs = 30_000
    expect(await training.closeSilentRuns()).toBe(0)
    clock.aheadMs = 70_000
    expect(await training.closeSilentRuns()).toBe(1)
    expect(await runIn(training)).toMatchObject({
      outcome: 'killed',
      endIsPresumed: true,
      message: expect.stringContaining(String(victim.pid)),
    })
    expect(runs.at(-1)).toMatchObject({ id: 'r1', outcome: 'killed' })
    expect(runs.at(-1)?.endedAt).toBeLessThan(Date.now() + 1)
    await training.postSteps('r1', step(1))
    expect(await runIn(training)).toMatchObject({ outcome: 'killed' })
    // From its spool: it was not alive when somebody sent it.
    await training.postSteps('r1', step(2))
    expect(await runIn(training)).toMatchObject({ outcome: 'killed' })
    const next = child()
    await announce(training, { pid: next.pid })
    await training.postSteps('r1', step(3))
    await expect.poll(() => runIn(training), PATIENT).toMatchObject({ outcome: null, endedAt: null, endIsPresumed: false, message: null })
    expect(runs.at(-1)).toMatchObject({ id: 'r1', outcome: null, endedAt: null })
    // What is told of the end counts more than what was concluded.
    clock.aheadMs = 140_000
    await killed(next)
    expect(await training.closeSilentRuns()).toBe(1)
    await training.endRun('r1', { outcome: 'success', message: null, endedAt: Date.now(), rank: 0 })
    expect(await runIn(training)).toMatchObject({ outcome: 'success', endIsPresumed: false, message: null })
    await training.postSteps('r1', step(4))
    expect(await runIn(training)).toMatchObject({ outcome: 'success' })
  })

  it('is no death when its last words, that it ended well, wait in its spool', async () => {
    const spoolFolder = mkdtempSync(join(tmpdir(), 'gpuwarden-spool-'))
    const { training, clock, runs } = world(null, 24, spoolFolder)
    const victim = child()
    await announce(training, { pid: victim.pid })
    await training.postSteps('r1', step(1))
    await killed(victim)
    const lines = [
      { run: { id: 'r1', name: 'demo' } },
      { seq: 2, step: 2, t: Date.now(), loss: 0.5 },
      { end: { outcome: 'success', rank: 0 } },
    ]
    const file = join(spoolFolder, `r1.rank0.${victim.pid}.jsonl`)
    writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n{"seq": 3, "st`)
    const ofAnother = join(spoolFolder, 'r10.rank0.1.jsonl')
    writeFileSync(ofAnother, '{"run": {"id": "r10"}}\n')
    clock.aheadMs = 70_000
    expect(await training.closeSilentRuns()).toBe(0)
    expect(await training.find('r1')).toMatchObject({ run: { outcome: 'success', endIsPresumed: false } })
    expect((await training.find('r1'))?.progress.figures()).toMatchObject({ lastStep: 2 })
    expect(runs.map(({ outcome }) => outcome)).not.toContain('killed')
    expect([existsSync(file), existsSync(ofAnother)]).toEqual([false, true])
  })

  it('elsewhere is open again before its late steps arrive', async () => {
    let aheadMs = 0
    const heard: string[] = []
    const training = createTraining({
      hub: {
        receiveRun: ({ endedAt }) => void heard.push(endedAt === null ? 'open' : 'over'),
        receiveSteps: (steps) => void heard.push(...steps.map((one) => `step ${one.step}`)),
      },
      ...{ dir: null, log: SILENT, now: () => Date.now() + aheadMs, settings: TRAINING_DEFAULTS },
    })
    rooms.push(training)
    await announce(training, { host: 'another-machine' })
    await training.postSteps('r1', step(1))
    aheadMs = 25 * HOUR
    expect(await training.closeSilentRuns()).toBe(1)
    await training.postSteps('r1', step(2))
    expect(heard).toEqual(['open', 'step 1', 'over', 'open', 'step 2'])
  })

  it('lives as long as one of its ranks does, and is not taken for a later user of its number', async () => {
    const { training, clock } = world()
    const [first, second] = [child(), child()]
    await announce(training, { pid: first.pid })
    await announce(training, { pid: second.pid })
    await killed(first)
    clock.aheadMs = 70_000
    expect(await training.closeSilentRuns()).toBe(0)
    const start = startTicksOf(second.pid) ?? 0
    expect([isStillRunning(second.pid, start), isStillRunning(second.pid, start + 1)]).toEqual([true, false])
    await killed(second)
    expect(await training.closeSilentRuns()).toBe(1)
  })

  it('counts as dead when only its parent has not noticed yet', async () => {
    const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] })
    children.push(parent)
    const pid = Number(await new Promise((resolve) => parent.stdout.once('data', (data) => resolve(String(data)))))
    const start = startTicksOf(pid) ?? 0
    expect(isStillRunning(pid, start)).toBe(true)
    // Its parent has to have become the sleep that waits for nobody.
    await expect.poll(async () => (await import('node:fs')).readFileSync(`/proc/${parent.pid}/comm`, 'utf8').trim(), PATIENT).toBe('sleep')
    process.kill(pid, 'SIGKILL')
    await expect.poll(() => isStillRunning(pid, start), PATIENT).toBe(false)
    expect(startTicksOf(pid)).toBe(start)
  })

  it('with its machine is closed as such after the next boot, even when its PID is in use again', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-silent-'))
    const first = world(dir)
    await announce(first.training, { pid: process.pid })
    await first.training.close()
    const file = join(dir, 'runs', 'r1.run.json')
    const kept = JSON.parse(readFileSync(file, 'utf8')) as { processes: { boot: string }[] }
    expect(kept.processes[0]?.boot).toMatch(/^[0-9a-f-]{36}$/)
    writeFileSync(file, JSON.stringify({ ...kept, processes: [{ ...kept.processes[0], boot: '00000000-0000-4000-8000-000000000000' }] }))
    const { training, clock, runs } = world(dir)
    await training.open()
    clock.aheadMs = 70_000
    expect(await training.closeSilentRuns()).toBe(1)
    expect(runs.at(-1)).toMatchObject({ outcome: 'killed', ending: { message: 'its machine was shut down or restarted', isAsked: false } })
  })

  it('elsewhere is closed as failed when nothing was heard for a day', async () => {
    const { training, clock } = world()
    await announce(training, { host: 'another-machine', pid: 1 })
    await training.postSteps('r1', step(1))
    clock.aheadMs = 23 * HOUR
    expect(await training.closeSilentRuns()).toBe(0)
    clock.aheadMs = 25 * HOUR
    expect(await training.closeSilentRuns()).toBe(1)
    const run = await runIn(training)
    expect(run).toMatchObject({ outcome: 'failed', endIsPresumed: true })
    expect(run?.message).toMatch(/^no sign of life for 25 h/)
    const never = world(null, 0)
    await announce(never.training, { host: 'another-machine' })
    never.clock.aheadMs = 1000 * HOUR
    expect(await never.training.closeSilentRuns()).toBe(0)
  })

  it('while the agent was down is closed at its next start; one elsewhere gets time to report first', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-silent-'))
    const first = world(dir)
    const victim = child()
    await announce(first.training, { pid: victim.pid })
    await announce(first.training, { id: 'far', host: 'another-machine' })
    await first.training.postSteps('r1', step(1))
    await first.training.close()
    await killed(victim)
    const ahead = 48 * HOUR
    const second = createTraining({
      hub: { receiveRun: ignore, receiveSteps: ignore },
      dir,
      log: SILENT,
      now: () => Date.now() + ahead,
    })
    rooms.push(second)
    await second.open()
    expect(await second.closeSilentRuns()).toBe(1)
    expect((await second.find('r1'))?.run).toMatchObject({ outcome: 'killed' })
    expect((await second.find('far'))?.run).toMatchObject({ outcome: null })
  })
})
