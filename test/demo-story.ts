/** What the demo's story must show, and what it must never do, whatever the seed. */
import { expect } from 'vitest'
import type { Finding } from '../src/core/model.ts'
import { type Played, played, START, words } from './demo-play.ts'

/** The parts of the story, and the second by which each must be there. */
const PARTS: readonly (readonly [part: string, bySecond: number, isIt: (finding: Finding) => boolean])[] = [
  ['an intruder', 40, ({ detector }) => detector === 'intruder'],
  ['a leak', 50, ({ detector, severity }) => detector === 'leak' && severity === 'warning'],
  ['its forecast', 60, ({ detector, severity }) => detector === 'oom' && severity === 'warning'],
  ['a hot card', 60, ({ detector, severity }) => detector === 'thermal' && severity === 'critical'],
  ['a straggler', 70, ({ detector }) => detector === 'straggler'],
  ['a critical forecast', 89, ({ detector, severity }) => detector === 'oom' && severity === 'critical'],
  [
    'its death',
    92,
    ({ detector, severity, message }) => detector === 'run_died' && severity === 'critical' && /a leak from .*forecast/.test(message),
  ],
  [
    'its forecast come true',
    92,
    ({ detector, state, message }) => detector === 'oom' && state === 'resolved' && message.startsWith('Came true'),
  ],
]

/** More messages than this in an hour, or at a time, and nobody reads them. */
const MOST_AN_HOUR = 30
const MOST_AT_A_TIME = 8

/** Whatever the scenario: nothing is said of the dead, and no warning of an out-of-memory was wrong. */
export async function checkTruth(scenario: string, seconds: number): Promise<void> {
  const play = await played({ scenario, seconds })
  expect(ofDead(play, 1), 'findings of dead runs').toEqual([])
  expect(words(falseForecasts(play)), 'forecasts that did not come true').toEqual([])
}

export async function checkStory(seed: number, seconds: number, interval = 1): Promise<void> {
  const story = await played({ scenario: 'story', seconds, seed, interval })
  for (const [part, bySecond, isIt] of PARTS) {
    const first = story.found.find(isIt)
    expect(first && (first.at - START) / 1000, `seed ${seed}: ${part}`).toBeLessThanOrEqual(bySecond + interval)
  }
  expect(new Set(story.found.map(({ provenance }) => provenance)), `seed ${seed}`).toEqual(new Set(['simulated']))
  expect(words(ofHealthy(story)), `seed ${seed}: the healthy run`).toEqual([])
  expect(ofDead(story, interval), `seed ${seed}: findings of dead runs`).toEqual([])
  expect(words(falseForecasts(story)), `seed ${seed}: forecasts that did not come true`).toEqual([])
  expect(Math.max(...story.open.map((list) => list.length)), `seed ${seed}: at a time`).toBeLessThanOrEqual(MOST_AT_A_TIME)
  expect(beginnings(story) / Math.max(1, seconds / 3600), `seed ${seed}: in an hour`).toBeLessThanOrEqual(MOST_AN_HOUR)
  if (seconds > 600) expect(story.runs.size, `seed ${seed}: runs`).toBeLessThan(5 + 12 * (seconds / 3600))
}

/** The healthy run is alone on GPU 1. */
function ofHealthy({ found, runs }: Played): Finding[] {
  const isHealthy = ({ run, gpuIndex }: Finding['subject']) =>
    gpuIndex === 1 || (run !== null && runs.get(run)?.gpus.includes('GPU-SIM-0001') === true)
  return found.filter(({ subject, severity }) => severity !== 'info' && isHealthy(subject))
}

/** What was still open of a run a tick after its end, but for the message that it died. */
function ofDead({ open, runs }: Played, interval: number): string[] {
  return open.flatMap((list, tick) =>
    list
      .filter(({ detector, subject }) => {
        const endedAt = subject.run === null ? null : (runs.get(subject.run)?.endedAt ?? null)
        return detector !== 'run_died' && endedAt !== null && endedAt < START + tick * interval * 1000
      })
      .map(({ message }) => `${tick * interval} s ${message}`),
  )
}

function falseForecasts({ found }: Played): Finding[] {
  const warned = new Set(found.filter(({ detector, severity }) => detector === 'oom' && severity !== 'info').map((one) => one.fingerprint))
  return found.filter(
    ({ detector, state, fingerprint, message }) =>
      detector === 'oom' && state === 'resolved' && warned.has(fingerprint) && !message.startsWith('Came true'),
  )
}

function beginnings({ open }: Played): number {
  let count = 0
  let before = new Set<string>()
  for (const list of open) {
    const now = new Set(list.map(({ fingerprint }) => fingerprint))
    for (const fingerprint of now) if (!before.has(fingerprint)) count++
    before = now
  }
  return count
}
