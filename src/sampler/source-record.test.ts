import { expect, it } from 'vitest'
import { healthOf, moveTimes, newRecord } from './source-record.ts'

it('moves the times of a stuck source with the clock, so that it has been stuck for as long as before', () => {
  const record = { ...newRecord('nvidia', 1000, 1000, 5000), state: 'not_responding' as const, lastSampleAt: 4000, nextStartAt: 7000 }
  moveTimes(record, -3_600_000)
  expect(healthOf(record, 5000, undefined)).toMatchObject({
    since: 5000 - 3_600_000,
    lastSampleAt: 4000 - 3_600_000,
    nextStartAt: 7000 - 3_600_000,
  })
  const fresh = newRecord('nvidia', 1000, 1000, 5000)
  moveTimes(fresh, 3_600_000)
  expect(fresh).toMatchObject({ since: 3_605_000, lastSampleAt: null, nextStartAt: null })
})
