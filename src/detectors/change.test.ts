import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../kinds.ts'
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
  it('warns of a change four times as large as any before, and says when it is over', () => {
    const found = feed(change.create(change.defaults), jump())
    expect(found[0]).toMatchObject({ state: 'active', severity: 'warning', at: START + 400_000 })
    expect(found[0]?.message).toMatch(/memory in use went from \d+ % to \d+ %, .* times the largest change so far/)
    expect(found.at(-1)?.state).toBe('resolved')
    expect(found.at(-1)?.message).toMatch(/is back at \d\d % after/)
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
