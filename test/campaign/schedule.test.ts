import { expect, it } from 'vitest'
import { scheduleOf } from './schedule.ts'

const HOUR_MS = 3_600_000

it('is the same for the same seed, and another one for another seed', () => {
  expect(scheduleOf(7, HOUR_MS)).toEqual(scheduleOf(7, HOUR_MS))
  expect(scheduleOf(8, HOUR_MS).faults).not.toEqual(scheduleOf(7, HOUR_MS).faults)
})

it('has every kind of fault, run and ailment within an hour, in order', () => {
  const { faults, plays, ailments } = scheduleOf(3, HOUR_MS)
  expect(new Set(faults.map(({ kind }) => kind))).toEqual(
    new Set(['kill', 'restart', 'full_disk', 'clock_jump', 'webhook', 'mail', 'gate']),
  )
  expect(new Set(plays.map(({ ending }) => ending))).toEqual(new Set(['success', 'failed', 'raised', 'unsaid', 'killed']))
  expect(new Set(ailments.map(({ kind }) => kind))).toEqual(new Set(['thermal', 'ecc']))
  for (const list of [faults, plays, ailments]) expect(list.map(({ at }) => at)).toEqual(list.map(({ at }) => at).sort((a, b) => a - b))
  expect(Math.max(...plays.map(({ at }) => at))).toBeLessThan(HOUR_MS)
})
