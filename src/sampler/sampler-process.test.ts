import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { FromSampler, StartMessage } from './messages.ts'
import { type SamplerFailure, SamplerProcess } from './sampler-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'sampler-'))
const samplers: SamplerProcess[] = []
afterEach(() => {
  for (const sampler of samplers.splice(0)) sampler.kill()
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** A process that says these things and then answers no more, as one in a driver call does. */
function hangAfter(messages: readonly FromSampler[]): Promise<SamplerFailure> {
  const entry = join(folder, 'child.mjs')
  writeFileSync(
    entry,
    `const messages = ${JSON.stringify(messages)}
     const next = () => {
       const message = messages.shift()
       if (message) process.send(message, next)
       else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
     }
     process.once('message', next)`,
  )
  return new Promise((resolve) => {
    const sampler = new SamplerProcess({
      entry: pathToFileURL(entry),
      env: process.env,
      start: { type: 'start', root: '/', intervalMs: 1000, beatMs: 1000, options: {} },
      deadlineMs: 300,
      openDeadlineMs: 60_000,
      onMessage: () => undefined,
      onFailure: resolve,
      onExit: () => undefined,
    })
    samplers.push(sampler)
    sampler.open('nvidia')
    sampler.open('host')
  })
}

function pause(ms: number): Promise<'no failure'> {
  return new Promise((resolve) => setTimeout(resolve, ms, 'no failure'))
}

const opened = (source: string): FromSampler => ({ type: 'opened', source, provenance: 'live', intervalMs: 1000, devices: [] })
const tick = (source: string, next?: string): FromSampler => ({
  ...{ type: 'tick', source, at: 1, samples: [], skippedTicks: 0, readMs: 1 },
  ...(next === undefined ? {} : { next }),
})

describe('a sampler that falls silent', () => {
  const both = [opened('nvidia'), opened('host')]

  it.each<[string, readonly FromSampler[], string]>([
    ['the first source, when nothing else was announced', [...both, tick('nvidia')], 'nvidia'],
    [
      'the first source in its first read, though another is still to be opened',
      [opened('nvidia'), { type: 'begin', source: 'nvidia' }],
      'nvidia',
    ],
    ['who was announced by a message', [...both, tick('nvidia'), { type: 'begin', source: 'host' }], 'host'],
    ['who was announced by the tick before', [...both, tick('nvidia', 'host')], 'host'],
    ['the first source again, once the announced one has answered', [...both, tick('nvidia', 'host'), tick('host')], 'nvidia'],
  ])('is blamed on %s', async (_, messages, culprit) => {
    expect(await hangAfter(messages)).toMatchObject({ kind: 'not_responding', culprit })
  })
})

describe('the deadline', () => {
  const DEADLINE_MS = 2000

  /** A process that gives a sign of life this often, forever, or for so long. */
  function beatsEvery(everyMs: number, forMs = Number.MAX_SAFE_INTEGER): Promise<SamplerFailure> {
    const entry = join(folder, `beats-${forMs}.mjs`)
    writeFileSync(
      entry,
      `const startedMs = performance.now()
       const beat = () => {
         if (performance.now() - startedMs < ${forMs}) process.send({ type: 'beat', usage: { cpuSeconds: 0, residentBytes: 0 } })
       }
       process.once('message', () => setInterval(beat, ${everyMs}))`,
    )
    let fail: (failure: SamplerFailure) => void
    const failed = new Promise<SamplerFailure>((resolve) => {
      fail = resolve
    })
    const sampler = new SamplerProcess({
      entry: pathToFileURL(entry),
      env: process.env,
      start: { type: 'start', root: '/', intervalMs: 1000, beatMs: everyMs, options: {} },
      deadlineMs: DEADLINE_MS,
      openDeadlineMs: DEADLINE_MS,
      onMessage: () => undefined,
      onFailure: (failure) => fail(failure),
      onExit: () => undefined,
    })
    samplers.push(sampler)
    return failed
  }

  it('is counted from the last sign of life, and hardly exceeded', async () => {
    // At three moments, so that none of them is the lucky one.
    const silences = await Promise.all(
      [300, 630, 960].map(async (forMs) => {
        const { since } = await beatsEvery(100, forMs)
        return Date.now() - since
      }),
    )
    expect(Math.min(...silences)).toBeGreaterThanOrEqual(DEADLINE_MS - 10)
    expect(Math.max(...silences)).toBeLessThan(1.25 * DEADLINE_MS)
  })

  it('is not missed by who talks while this process is held up', async () => {
    const failed = beatsEvery(100)
    await pause(500)
    for (let i = 0; i < 2; i++) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1.3 * DEADLINE_MS)
      expect(await Promise.race([failed, pause(50)])).toBe('no failure')
    }
  })
})

describe('the process of a sampler', () => {
  function flagsAt(intervalMs: number, options: StartMessage['options']): Promise<unknown> {
    const entry = join(folder, 'flags.mjs')
    writeFileSync(
      entry,
      `const detail = { flags: process.execArgv.join(' ') }
       process.once('message', () => process.send({ type: 'log', level: 'info', source: 'host', message: '', detail }))`,
    )
    return new Promise((resolve, reject) => {
      const sampler = new SamplerProcess({
        entry: pathToFileURL(entry),
        env: process.env,
        start: { type: 'start', root: '/', intervalMs, beatMs: 1000, options },
        deadlineMs: 60_000,
        openDeadlineMs: 60_000,
        onMessage: (message) => resolve(JSON.stringify(message)),
        onFailure: ({ detail }) => reject(new Error(detail)),
        onExit: () => undefined,
      })
      samplers.push(sampler)
    })
  }

  it('does without the optimizing compilers unless it has much to do', async () => {
    expect(await flagsAt(1000, {})).toContain('--no-opt')
    expect(await flagsAt(100, {})).not.toContain('--no-opt')
    expect(await flagsAt(1000, { replayPath: '/logs' })).not.toContain('--no-opt')
  })
})
