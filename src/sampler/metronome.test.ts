import { performance } from 'node:perf_hooks'
import { describe, expect, it } from 'vitest'
import { type Beat, Metronome } from './metronome.ts'

/** Notes when it was run and whom it was told to announce; due again `everyMs` later, `times` in all. */
class Note implements Beat {
  dueMs: number
  readonly source: string | null
  readonly #heard: string[]
  readonly #everyMs: number
  #left: number

  constructor(source: string | null, heard: string[], { dueMs = performance.now(), everyMs = 5, times = 1 } = {}) {
    this.source = source
    this.dueMs = dueMs
    this.#heard = heard
    this.#everyMs = everyMs
    this.#left = times
  }

  run(next: string | null, wasTold: boolean): boolean {
    this.#heard.push(`${this.source ?? 'pulse'}${wasTold ? ' (told)' : ''} then ${next}`)
    this.#left--
    this.dueMs = this.#left > 0 ? performance.now() + this.#everyMs : Number.POSITIVE_INFINITY
    return next !== null
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2))
}

describe('Metronome', () => {
  it('runs together what is due together, each one given the next, and what cannot hang last', async () => {
    const heard: string[] = []
    const metronome = new Metronome()
    const dueMs = performance.now() + 5
    metronome.add(new Note(null, heard, { dueMs }))
    metronome.add(new Note('nvidia', heard, { dueMs }))
    metronome.add(new Note('host', heard, { dueMs: dueMs + 0.5 }))
    await until(() => heard.length === 3)
    expect(heard).toEqual(['nvidia then host', 'host (told) then null', 'pulse then null'])
  })

  it('goes on for each in its own rhythm', async () => {
    const heard: string[] = []
    const metronome = new Metronome()
    metronome.add(new Note('often', heard, { everyMs: 5, times: 6 }))
    metronome.add(new Note('seldom', heard, { everyMs: 20, times: 2 }))
    await until(() => heard.length === 8)
    expect(heard.filter((one) => one.startsWith('often'))).toHaveLength(6)
  })

  it('runs sooner what became due sooner, and no longer what was removed', async () => {
    const heard: string[] = []
    const metronome = new Metronome()
    const late = new Note('late', heard, { dueMs: performance.now() + 3_600_000 })
    const gone = new Note('gone', heard, { dueMs: performance.now() + 10 })
    metronome.add(late)
    metronome.add(gone)
    metronome.remove(gone)
    late.dueMs = performance.now() + 30
    metronome.arm()
    await until(() => heard.length > 0)
    expect(heard).toEqual(['late then null'])
  })
})
