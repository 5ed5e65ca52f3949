import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import type { Finding } from '../core/model.ts'
import { change } from './change.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { alarms, device, GIB, gpu, process, START } from './inputs.fixture.ts'
import { findingsOf, MODES, traceOf } from './memory-traces.fixture.ts'

/** Small waves of memory, then suddenly `jump` GiB more for a while. */
function jump(gib = 30, pid = 1001): DetectorInput[] {
  const inputs: DetectorInput[] = [device()]
  for (let i = 0; i < 900; i++) {
    const high = i >= 400 && i < 600
    const used = (20 + Math.sin(i / 7) + (high ? gib : 0)) * GIB
    inputs.push(gpu(START + i * 1000, { memoryUsedBytes: used, processes: [process(high ? pid : 1001)] }))
  }
  return inputs
}

detectorContract({ kind: change, trouble: () => jump() })

describe('change', () => {
  it('mentions a change four times as large as any before at once, warns when it stays, and says when it is over', () => {
    const found = feed(change.create(change.defaults), jump())
    expect(found[0]).toMatchObject({ state: 'active', severity: 'info', at: START + 400_000 })
    expect(found[0]?.message).toMatch(/memory in use jumped from \d+% to \d+%, .* times the largest change so far\.$/)
    expect(alarms(found).map((finding) => (finding.at - START) / 1000)).toEqual([520])
    expect(alarms(found)[0]?.message).toMatch(/, and has stayed there for 2 min\.$/)
    expect(found.at(-1)?.state).toBe('resolved')
    expect(found.at(-1)?.message).toMatch(/is back at \d\d% after/)
  })

  it('does not warn of what ends within two minutes, nor of what was never watched before', () => {
    const inputs = (from: number, to: number) =>
      Array.from({ length: 900 }, (_, i) => gpu(START + i * 1000, { powerWatts: i >= from && i < to ? 90 : 600 + 5 * Math.sin(i) }))
    const short = feed(change.create(change.defaults), inputs(400, 490))
    expect(short.length).toBeGreaterThan(0)
    expect(alarms(short)).toEqual([])
    const twice = Array.from({ length: 900 }, (_, i) =>
      gpu(START + i * 5000, { powerWatts: i === 400 || i === 424 ? 90 : 600 + 5 * Math.sin(i) }),
    )
    expect(alarms(feed(change.create(change.defaults), twice))).toEqual([])
    const early = feed(change.create(change.defaults), inputs(200, 500))
    expect(early[0]?.message).toMatch(/; gpuwarden has watched it for only \d+ (s|min)( \d+ s)?\.$/)
    expect(early[0]?.evidence.processesChanged).toBe(false)
    expect(alarms(early)).toEqual([])
    expect(alarms(feed(change.create(change.defaults), inputs(400, 700))).length).toBeGreaterThan(0)
  })

  it.each([100, 200, 1000, 5000])('says nothing of the evaluations of a training after the first, looking every %d ms', (everyMs) => {
    const detector = change.create(change.defaults)
    const found: Finding[] = []
    for (let at = 0; at < 2 * 3_600_000; at += everyMs) {
      // Every 25 minutes, for three minutes: half the work and a tenth of the memory more.
      const isEvaluation = at % 1_500_000 >= 1_200_000 && at % 1_500_000 < 1_380_000
      const ripple = Math.sin(at / 3700)
      const used = (20 + 0.1 * ripple + (isEvaluation ? 8 : 0)) * GIB
      const powerWatts = (isEvaluation ? 250 : 600) + 10 * ripple
      found.push(...detector.accept(gpu(START + at, { memoryUsedBytes: used, powerWatts, utilizationRatio: isEvaluation ? 0.4 : 0.95 })))
    }
    expect(found.filter((finding) => finding.at > START + 1_500_000 + 600_000)).toEqual([])
  })

  it('only mentions it when a process came or went at that time', () => {
    const found = feed(change.create(change.defaults), jump(30, 2002))
    expect(found.length).toBeGreaterThan(0)
    expect(alarms(found)).toEqual([])
  })

  it('does not call what is different after a day without samples sudden, and ends what it had said before', () => {
    const apart = jump().map((input) =>
      input.type === 'gpu' && input.sample.at >= START + 400_000
        ? gpu(input.sample.at + 86_400_000, { memoryUsedBytes: input.sample.memoryUsedBytes })
        : input,
    )
    const found = feed(change.create(change.defaults), apart)
    expect(alarms(found.filter((finding) => finding.at < START + 86_400_000 + 599_000))).toEqual([])
    const during = jump().map((input) =>
      input.type === 'gpu' && input.sample.at >= START + 500_000
        ? gpu(input.sample.at + 86_400_000, { memoryUsedBytes: input.sample.memoryUsedBytes })
        : input,
    )
    const ended = feed(change.create(change.defaults), during).find((finding) => finding.state === 'resolved')
    expect(ended?.message).toMatch(/memory in use was not watched for/)
  })

  it('does not take another size of the device for a change of what is in use', () => {
    const inputs: DetectorInput[] = [device()]
    for (let i = 0; i < 900; i++)
      inputs.push(gpu(START + i * 1000, { memoryTotalBytes: (i < 400 ? 80 : 10) * GIB, memoryUsedBytes: (8 + 0.1 * Math.sin(i)) * GIB }))
    expect(feed(change.create(change.defaults), inputs)).toEqual([])
  })

  it('takes a change that stays for the new normal', () => {
    const inputs: DetectorInput[] = [device()]
    for (let i = 0; i < 1500; i++) inputs.push(gpu(START + i * 1000, { powerWatts: i < 500 ? 100 : 600 }))
    const found = feed(change.create(change.defaults), inputs)
    expect(found.at(-1)?.message).toMatch(/power draw has stayed at 600 W for .*new normal/)
  })
})

for (const mode of MODES)
  describe(`change on recorded runs, ${mode}`, () => {
    for (const name of [
      'benign_sawtooth',
      'divergence',
      'eval_spikes',
      'growing_batch',
      'healthy',
      'leak_graph',
      'leak_sawtooth',
      'stall',
      'warmup_plateau',
    ])
      it(`does not warn on ${name}`, async () => expect(alarms(findingsOf(change, (await traceOf(name, mode)).inputs))).toEqual([]))
  })
