import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { Analyses, type AnalysesOptions } from './analyses.ts'
import { AnalysisProcess } from './analysis-process.ts'

/** A process that does as the name of its file says. */
const PRETENDED = `
let name
process.on('disconnect', () => process.exit())
process.on('message', (message) => {
  if (message.type === 'open') {
    name = message.file.name
    if (name === 'dies') process.kill(process.pid, 'SIGKILL')
    if (name === 'wrong') process.send({ type: 'unreadable', reason: 'no snapshot' })
    if (name === 'good') process.send({ type: 'opened' })
  } else process.send({ type: 'answer', id: message.id, body: JSON.stringify({ pid: process.pid }) })
})`

const entry = join(mkdtempSync(join(tmpdir(), 'gpuwarden-test-')), 'pretended.mjs')
writeFileSync(entry, PRETENDED)
const file = (name: string) => ({ path: `/nowhere/${name}`, name })

describe('analyses', () => {
  let analyses: Analyses

  const start = (options: Omit<AnalysesOptions, 'entry'> = {}) => {
    analyses = new Analyses({ entry: pathToFileURL(entry), ...options })
    return analyses
  }

  afterEach(() => analyses.close())

  const until = async (id: string, name: string, kind: string) => {
    for (let turn = 0; turn < 500; turn++) {
      const state = analyses.open(id, file(name))
      if (state !== 'busy' && state.kind === kind) return state
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error(`it never was ${kind}`)
  }

  it('are kept for further questions, and begun anew when forgotten', async () => {
    start()
    expect(analyses.ask('a', { ask: 'picture' })).toBe(null)
    await until('a', 'good', 'ready')
    const first = await analyses.ask('a', { ask: 'picture' })
    expect(await analyses.ask('a', { ask: 'picture' })).toEqual(first)
    analyses.forget('a')
    expect(analyses.ask('a', { ask: 'picture' })).toBe(null)
    await until('a', 'good', 'ready')
    expect(await analyses.ask('a', { ask: 'picture' })).not.toEqual(first)
  })

  it('say why one failed, and try again after a while', async () => {
    start({ faultMs: 300 })
    expect(await until('w', 'wrong', 'failed')).toEqual({ kind: 'failed', reason: 'no snapshot' })
    expect(await until('d', 'dies', 'failed')).toMatchObject({ reason: expect.stringMatching(/ended \(SIGKILL\)/) })
    expect(analyses.open('d', file('dies'))).toMatchObject({ kind: 'failed' })
    await until('d', 'good', 'ready')
  })

  it('are few: one that nobody asks makes room, those being read do not', async () => {
    start({ most: 2 })
    await until('a', 'good', 'ready')
    analyses.open('b', file('hangs'))
    expect(analyses.open('c', file('hangs'))).toEqual({ kind: 'reading', share: 0 })
    expect(analyses.ask('a', { ask: 'picture' })).toBe(null)
    expect(analyses.open('d', file('good'))).toBe('busy')
  })

  it('end when nobody looks anymore', async () => {
    start({ idleMs: 50 })
    await until('a', 'good', 'ready')
    for (let turn = 0; turn < 200 && analyses.ask('a', { ask: 'picture' }) !== null; turn++)
      await new Promise((resolve) => setTimeout(resolve, 120))
    expect(analyses.ask('a', { ask: 'picture' })).toBe(null)
  })

  it('do not wait forever for one that is silent', async () => {
    start()
    const ended = new Promise<AnalysisProcess>((resolve) => {
      const one: AnalysisProcess = new AnalysisProcess({
        entry: pathToFileURL(entry),
        file: file('hangs'),
        silenceMs: 200,
        onEnd: () => resolve(one),
      })
    })
    expect((await ended).state).toMatchObject({ kind: 'failed', reason: expect.stringMatching(/did not answer/) })
  })
})
