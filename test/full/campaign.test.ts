/** A short campaign of kills, full disks, clock jumps and bad receivers. Hours of it: npm run campaign -- --hours 2 --seed N. */
import { expect, it } from 'vitest'
import { runCampaign } from '../campaign/campaign.ts'
import { textOf } from '../campaign/report.ts'
import { scheduleOf } from '../campaign/schedule.ts'

const MINUTES = 3
const SEED = 20_261_116

it('loses nothing, doubles nothing and resolves nothing falsely', { timeout: 600_000 }, async () => {
  const result = await runCampaign(scheduleOf(SEED, MINUTES * 60_000), () => undefined)
  const text = textOf(result, SEED, MINUTES)
  console.log(text)
  expect(
    result.faults.filter(({ isExcused }) => !isExcused),
    text,
  ).toEqual([])
  expect(result.figures['agent kills']).toBeGreaterThan(3)
  expect(result.figures['alerts scripted']).toBeGreaterThan(10)
})
