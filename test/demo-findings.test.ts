/** A newcomer who orders a trouble sees it found within a minute, and sees nothing where all is well. More seeds and hours: test/full. */
import { describe, expect, it } from 'vitest'
import { findings, named, TROUBLES, words } from './demo-play.ts'

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
