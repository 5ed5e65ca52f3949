/** As test/demo-findings.test.ts, with many seeds and rates. */
import { describe, expect, it } from 'vitest'
import { findings, named, TROUBLES, words } from '../demo-play.ts'
import { checkStory } from '../demo-story.ts'

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]

describe('each problem is found within a minute', () => {
  it.each(TROUBLES)('%s', async (scenario, detectorNames) => {
    for (const seed of SEEDS)
      expect([...named(await findings({ scenario, seconds: 60, seed }))], `seed ${seed}`).toEqual(
        expect.arrayContaining([...detectorNames]),
      )
  })
})

describe('where all is well nothing is said', () => {
  it.each([0.1, 0.5, 1, 5, 10, 60])('looking every %d s', async (interval) => {
    expect(words(await findings({ scenario: 'healthy', seconds: 600, interval }))).toEqual([])
  })

  it('whatever the seed', async () => {
    for (const seed of SEEDS) expect(words(await findings({ scenario: 'healthy', seconds: 600, seed })), `seed ${seed}`).toEqual([])
  })

  describe.each([
    ['with training steps', false],
    ['from the GPU alone', true],
  ])('nor is anybody warned in fifty minutes of evaluations, checkpoints and jobs that come and go, %s', (_, isGpuAlone) => {
    it.each([0.1, 0.2, 0.5, 1, 5])('looking every %d s', async (interval) => {
      for (const seed of interval < 0.5 ? [4] : [2, 3, 4, 8]) {
        const found = await findings({ scenario: 'healthy', seconds: 3000, seed, interval, isGpuAlone })
        expect(words(found.filter((one) => one.severity !== 'info')), `seed ${seed}`).toEqual([])
      }
    })
  })
})

describe('the story', () => {
  it.each(SEEDS)('goes on for an hour without a false word, and without noise (seed %i)', (seed) => checkStory(seed, 3600), 300_000)
  it('and for six', () => checkStory(4, 6 * 3600), 600_000)
})
