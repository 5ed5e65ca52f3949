import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sample } from '../core/model.ts'
import type { Source, SourceTick } from '../core/source-contract.ts'
import { replay } from './replay.ts'
import { sourceContract, sourceEnv } from './source.contract.ts'

const HEALTHY = fileURLToPath(new URL('../../fixtures/traces/healthy', import.meta.url))
const START = Date.UTC(2026, 10, 15, 6)
const TICK: SourceTick = { at: 0, monotonicMs: 0, tick: 0 }

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'gpuwarden-replay-'))
})
afterAll(async () => {
  await rm(root, { recursive: true, force: true })
})

sourceContract('replay', {
  kind: replay,
  present: () => sourceEnv({ options: { replayPath: HEALTHY } }),
  absent: () => sourceEnv(),
  gpus: 1,
})

async function opened(options: object, now = () => 0, log: string[] = []): Promise<Source> {
  const source = await replay.open(sourceEnv({ options, now, log: (_, message) => log.push(message) }))
  if (source === null) throw new Error('nothing to replay')
  return source
}

async function recordingOf(times: readonly number[], more = ''): Promise<string> {
  const folder = await mkdtemp(join(root, 'run-'))
  const lines = times.map((ms, index) => ({
    timestamp: new Date(START + ms).toISOString(),
    gpu_index: index < 2 ? 0 : 1,
    memory_used_mb: 1,
  }))
  await writeFile(join(folder, 'gpu_metrics.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join('') + more)
  return folder
}

describe('replay', () => {
  it('gives one recorded moment a read, with the recorded times, at the recorded pace', async () => {
    const source = await opened({ replayPath: await recordingOf([0, 100, 100, 350]), speed: 1 })
    expect(source.provenance).toBe('replay')
    const first = source.devices()
    expect(first.map((device) => device.id)).toEqual(['replay-gpu-0'])
    const seen: [number[], number | null | undefined][] = []
    while (!source.ended?.()) {
      const samples = await source.read(TICK)
      seen.push([samples.map((sample) => sample.at - START), source.nextDelayMs?.()])
    }
    expect(seen).toEqual([
      [[0], 100],
      [[100, 100], 250],
      [[350], 0],
    ])
    expect(source.devices()).not.toBe(first)
    expect(source.devices().map((device) => device.id)).toEqual(['replay-gpu-0', 'replay-gpu-1'])
    expect(await source.read(TICK)).toEqual([])
    await source.close()
  })

  it('divides the pace by the speed and makes up for lost time', async () => {
    let now = 0
    const source = await opened({ replayPath: await recordingOf([0, 1000, 2000, 60_000]), speed: 10 }, () => now)
    await source.read(TICK)
    now = 30
    expect(source.nextDelayMs?.()).toBe(70)
    now = 120
    await source.read(TICK)
    expect(source.nextDelayMs?.()).toBe(80)
    now = 3_600_000
    await source.read(TICK)
    expect(source.nextDelayMs?.()).toBe(5800)
    await source.close()
  })

  it.each([Number.POSITIVE_INFINITY, Number.MAX_VALUE])(
    'gives many moments a read, in order, when it goes as fast as it can (%d)',
    async (speed) => {
      const source = await opened({ replayPath: HEALTHY, speed })
      const samples: Sample[] = []
      let reads = 0
      while (!source.ended?.()) {
        samples.push(...(await source.read(TICK)))
        expect(source.nextDelayMs?.()).toBe(0)
        reads++
      }
      expect(samples.length).toBe(464 + 1487)
      expect(reads).toBeLessThan(20)
      expect(samples.map((sample) => sample.at)).toEqual(samples.map((sample) => sample.at).toSorted((a, b) => a - b))
      expect(samples.filter((sample) => sample.kind === 'step').length).toBe(1487)
      await source.close()
    },
  )

  it('says at the end what could not be used', async () => {
    const log: string[] = []
    const source = await opened({ replayPath: await recordingOf([0, 1], '{"torn'), speed: Number.POSITIVE_INFINITY }, () => 0, log)
    await source.read(TICK)
    expect(log).toEqual([expect.stringMatching(/parts of the recording could not be used: .*gpu_metrics\.jsonl: 1 torn/)])
    await source.close()
  })

  it('refuses what it cannot play', async () => {
    await expect(opened({ replayPath: join(root, 'nowhere') })).rejects.toThrow(/nowhere \(ENOENT\); expected a folder/)
    await expect(opened({ replayPath: await recordingOf([], 'rubbish\n') })).rejects.toThrow(/nothing to replay: .*1 not_json/)
    await expect(opened({ replayPath: HEALTHY, speed: 0 })).rejects.toThrow(/speed of a replay must be a number above 0.*got 0/)
  })
})

describe('a replay that is steered', () => {
  const times = [0, 1000, 2000, 3000, 4000]
  const at = (samples: readonly Sample[]) => samples.map((sample) => sample.at - START)

  async function steered() {
    const clock = { now: 0 }
    const source = await opened({ replayPath: await recordingOf(times), speed: 1 }, () => clock.now)
    if (!source.playback) throw new Error('it cannot be steered')
    return { source, playback: source.playback, clock }
  }

  it('pauses, says so, and goes on where it was at the new speed', async () => {
    const { source, playback, clock } = await steered()
    await source.read(TICK)
    playback.command({ playing: false })
    expect(await source.read(TICK)).toEqual([])
    expect(playback.state()).toEqual({ state: 'paused', at: START, speed: 1, jumps: 0 })
    expect(source.nextDelayMs?.()).toBe(Number.POSITIVE_INFINITY)
    clock.now = 60_000
    playback.command({ playing: true, speed: 10 })
    // Steering alone plays nothing before it is due.
    expect(await source.read(TICK)).toEqual([])
    expect(source.nextDelayMs?.()).toBe(100)
    clock.now += 100
    expect(at(await source.read(TICK))).toEqual([1000])
    await source.close()
  })

  it('goes forward over what is between, and back by starting over', async () => {
    const { source, playback } = await steered()
    await source.read(TICK)
    playback.command({ at: START + 3500 })
    expect(playback.state().state).toBe('seeking')
    expect(at(await source.read(TICK))).toEqual([1000, 2000, 3000])
    expect(playback.state()).toEqual({ state: 'playing', at: START + 3000, speed: 1, jumps: 1 })
    expect(playback.restarts).toBe(0)
    playback.command({ at: START + 1000, playing: false })
    expect(at(await source.read(TICK))).toEqual([0, 1000])
    expect(playback.state()).toEqual({ state: 'paused', at: START + 1000, speed: 1, jumps: 2 })
    expect(playback.restarts).toBe(1)
    await source.close()
  })

  it('stays at its end, can be looked at again from there, and played again from the beginning', async () => {
    const { source, playback } = await steered()
    playback.command({ at: START + 999_999 })
    expect(at(await source.read(TICK))).toEqual(times)
    expect(playback.state()).toMatchObject({ state: 'ended', at: START + 4000 })
    playback.command({ at: START + 2000 })
    await source.read(TICK)
    expect(playback.state()).toMatchObject({ state: 'paused', at: START + 2000 })
    playback.command({ at: START + 999_999 })
    await source.read(TICK)
    playback.command({ playing: true })
    expect(at(await source.read(TICK))).toEqual([0])
    expect(playback.state()).toMatchObject({ state: 'playing', at: START })
    await source.close()
  })

  it('takes the last of several wishes', async () => {
    const { source, playback } = await steered()
    await source.read(TICK)
    const reading = source.read(TICK)
    playback.command({ at: START + 4000 })
    playback.command({ at: START })
    await reading
    while (playback.state().state === 'seeking') await source.read(TICK)
    expect(playback.state().at).toBe(START)
    // Before the beginning there is still the first moment to see.
    playback.command({ at: 0 })
    while (playback.state().state === 'seeking') await source.read(TICK)
    expect(playback.state().at).toBe(START)
    await source.close()
  })
})
