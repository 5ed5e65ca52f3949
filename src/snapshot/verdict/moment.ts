/** `--at`: the moment that is looked at. */
import { EXIT, Failure } from '../../core/failure.ts'
import { ACTION } from '../read/keys.ts'
import type { Trace } from './trace.ts'

export type Moment =
  | { readonly kind: 'peak' | 'end' | 'oom' }
  | { readonly kind: 'event'; readonly index: number }
  | { readonly kind: 'seconds' | 'clock'; readonly value: number }

const EXPECTED = 'expected peak, end, oom, seconds after the first event, a time such as 2026-11-15T06:34:10Z, or #INDEX of an event'

export function readMoment(text: string): Moment {
  if (text === 'peak' || text === 'end' || text === 'oom') return { kind: text }
  if (/^#\d+$/.test(text)) return { kind: 'event', index: Number(text.slice(1)) }
  if (/^\d+(?:\.\d+)?$/.test(text)) return { kind: 'seconds', value: Number(text) }
  const clock = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(clock)) throw new Failure(`--at: ${EXPECTED}; got ${JSON.stringify(text)}`, { exitCode: EXIT.usage })
  return { kind: 'clock', value: clock }
}

/** Index of the last event that counts; -1: before the first. */
export function indexOf(moment: Moment, trace: Trace, peakIndex: number): number {
  switch (moment.kind) {
    case 'peak':
      return peakIndex
    case 'end':
      return trace.count - 1
    case 'event':
      if (moment.index < trace.count) return moment.index
      throw new Failure(`--at: event #${moment.index} of ${trace.count}`, { exitCode: EXIT.usage })
    case 'oom': {
      const last = trace.find(ACTION.oom).at(-1)
      if (last !== undefined) return last
      throw new Failure('--at oom: this file has no out-of-memory event', { exitCode: EXIT.usage })
    }
    default: {
      const begun = trace.time(0)
      if (begun === null)
        throw new Failure('--at: this file has no times (torch before 2.2); give #INDEX of an event', { exitCode: EXIT.usage })
      return trace.indexAfter(moment.kind === 'seconds' ? begun + moment.value * 1e6 : moment.value * 1e3) - 1
    }
  }
}

/** `the peak` */
export function nameOf({ kind }: Moment): string {
  const names = { peak: 'the peak', end: 'the end', oom: 'the out-of-memory', event: 'the event', seconds: 'that time', clock: 'that time' }
  return names[kind]
}
