/** A newcomer who orders a trouble sees it found within a minute, and sees nothing where all is well. More seeds and hours: test/full. */
import { describe, expect, it } from 'vitest'
import { findings, named, TROUBLES, words } from './demo-play.ts'
import { checkStory, checkTruth } from './demo-story.ts'

describe('each problem is found within a minute', () => {
  it.each(TROUBLES)('%s', async (scenario, detectorNames) => {
    expect([...named(await findings({ scenario, seconds: 60 }))]).toEqual(expect.arrayContaining([...detectorNames]))
  })
})

describe('where all is well', () => {
  it.each([0.5, 5, 60])('nothing is said, looking every %d s', async (interval) => {
    expect(words(await findings({ scenario: 'healthy', seconds: 600, interval }))).toEqual([])
  })

  it.each([
    ['with training steps', false],
    ['from the GPU alone', true],
  ])('no warning in fifty minutes of evaluations, checkpoints and jobs that come and go, %s', async (_, isGpuAlone) => {
    const found = await findings({ scenario: 'healthy', seconds: 3000, seed: 4, isGpuAlone })
    expect(words(found.filter((one) => one.severity !== 'info'))).toEqual([])
  })
})

describe('the story', () => {
  it.each([1, 2, 3])('is told within two minutes (seed %i)', (seed) => checkStory(seed, 120))
  it.each([0.2, 5])('is the same story, looking every %d s', (interval) => checkStory(1, 120, interval))
  it.each(['all', 'leak', 'oom'])('%s: no forecast is wrong, and the dead are left in peace', (scenario) => checkTruth(scenario, 900))
  it('goes on for an hour without a false word, and without noise', () => checkStory(1, 3600))
})
