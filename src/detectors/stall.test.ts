import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../kinds.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { alarms, device, GIB, gpu, process, run as runInput, START, step, timeOf } from './inputs.fixture.ts'
import { stall } from './stall.ts'

/** GPU samples each 500 ms and a step each second, except in the pauses. */
function training(
  seconds: number,
  pauses: [from: number, to: number][] = [],
  options: {
    gone?: number
    stepsUntil?: number
    utilization?: (second: number) => number
    watts?: (second: number) => number
    sent?: (second: number) => number
  } = {},
) {
  const inputs: DetectorInput[] = [device()]
  let number = 0
  for (let half = 0; half < seconds * 2; half++) {
    const second = half / 2
    const at = START + second * 1000
    const paused = pauses.some(([from, to]) => second >= from && second < to)
    const processes = options.gone !== undefined && second >= options.gone ? [] : [process(1001)]
    const powerWatts = options.watts?.(second) ?? 400
    const pcieTxBytesPerSecond = options.sent?.(second) ?? null
    inputs.push(
      gpu(at, { processes, powerWatts, pcieTxBytesPerSecond, utilizationRatio: options.utilization?.(second) ?? (paused ? 0 : 0.9) }),
    )
    if (half % 2 === 0 && !paused && second < (options.stepsUntil ?? 1e9)) inputs.push(step(at + 100, number++))
  }
  return inputs
}
const withoutSteps = (inputs: DetectorInput[]) => inputs.filter((input) => input.type !== 'step')

detectorContract({ kind: stall, trouble: () => training(120, [[60, 90]]) })

describe('stall', () => {
  const run = (inputs: DetectorInput[]) => feed(stall.create(stall.defaults), inputs)

  it('speaks after ten step times and the grace, and is over with the next step', () => {
    const found = run(training(120, [[60, 90]]))
    expect(found.map((finding) => finding.state)).toEqual(['active', 'resolved'])
    const silent = ((found[0]?.at ?? 0) - (START + 59_100)) / 1000
    expect(silent).toBeGreaterThan(11.8)
    expect(silent).toBeLessThan(12.5)
    expect(found[0]).toMatchObject({ severity: 'warning', subject: { run: 'run-1' }, evidence: { last_step: 59 } })
    expect(found[1]?.at).toBe(START + 90_100)
  })

  it('bears with pauses of a checkpoint', () => {
    expect(
      run(
        training(300, [
          [50, 58],
          [100, 109],
          [150, 159],
          [200, 210],
        ]),
      ),
    ).toEqual([])
  })

  it('learns pauses that come again', () => {
    const pauses: [number, number][] = [100, 200, 300, 400, 500].map((from) => [from, from + 30])
    const found = run(training(600, pauses)).filter((finding) => finding.state === 'active')
    expect(found.length).toBe(2)
  })

  describe('while the GPU works on', () => {
    const evaluation = (second: number) => (second >= 62 && second < 63.5 ? 0 : 1)
    const severities = (inputs: DetectorInput[]) => run(inputs).map((finding) => [finding.state, finding.severity])

    it('takes the first long pause for an evaluation, also one with short rests', () => {
      expect(severities(training(120, [[60, 90]], { utilization: evaluation }))).toEqual([
        ['active', 'info'],
        ['resolved', 'info'],
      ])
      expect(run(training(120, [[60, 90]], { utilization: evaluation }))[0]?.message).toMatch(/as in an evaluation: no step for 12 s/)
    })

    it('warns when the work stops as well, and after ten minutes in any case', () => {
      const stopped = run(training(150, [[60, 140]], { utilization: (second) => (second < 80 || second >= 140 ? 0.9 : 0) }))
      expect(alarms(stopped).map((finding) => Math.round((finding.at - START) / 1000))).toEqual([92])
      const endless = run(training(900, [[60, 890]], { utilization: () => 0.9 }))
      expect(alarms(endless).map((finding) => Math.round((finding.at - START) / 1000))).toEqual([660])
    })

    it('is not deceived by a collective that waits at full use and little power', () => {
      const inputs = training(120, [[60, 90]], { utilization: () => 1, watts: (second) => (second >= 60 && second < 90 ? 150 : 600) })
      expect(severities(inputs)).toEqual([
        ['active', 'warning'],
        ['resolved', 'warning'],
      ])
    })

    it('nor by another GPU, when the run has said which are its own', () => {
      const both = training(120, [[60, 90]]).flatMap((input) =>
        input.type === 'gpu' ? [input, gpu(input.sample.at + 1, { gpu: 'GPU-1', processes: [process(2002)] })] : [input],
      )
      expect(severities([runInput({ gpus: ['GPU-0'] }), ...both])[0]).toEqual(['active', 'warning'])
      expect(severities(both)[0]).toEqual(['active', 'warning'])
      expect(severities([runInput({ gpus: ['GPU-1'] }), ...both])[0]).toEqual(['active', 'info'])
    })

    it('takes a copy to the host at its beginning for a checkpoint, for half a minute', () => {
      const sent = (second: number) => (second === 60.5 ? 1e9 : 1e7)
      expect(severities(training(120, [[60, 85]], { sent }))).toEqual([
        ['active', 'info'],
        ['resolved', 'info'],
      ])
      const hung = run(training(150, [[60, 140]], { sent }))
      expect(alarms(hung).map((finding) => (finding.at - START) / 1000)).toEqual([90.5])
      expect(severities(training(120, [[60, 85]], { sent: () => 1e9 }))[0]).toEqual(['active', 'warning'])
    })

    it('knows whose run it is though it was announced before its first step', () => {
      expect(run([runInput({ user: 'alice' }), ...training(120, [[60, 90]])])[0]?.subject.user).toBe('alice')
    })
  })

  it('knows the end of a run from a stall: the process is gone', () => {
    expect(run(training(120, [], { stepsUntil: 60, gone: 62 }))).toEqual([])
  })

  it('does so from the memory where no process is listed', () => {
    const hidden = (memory: (second: number) => number) =>
      training(120, [], { stepsUntil: 60 }).map((input) =>
        input.type === 'gpu' ? gpu(input.sample.at, { processes: [], memoryUsedBytes: memory((input.sample.at - START) / 1000) }) : input,
      )
    expect(run(hidden((second) => (second < 62 ? 20 * GIB : 0)))).toEqual([])
    expect(run(hidden(() => 20 * GIB)).map((finding) => finding.state)).toContain('active')
  })

  it('does not take steps that arrive after the end for a new beginning', () => {
    const inputs = training(20)
    const steps = inputs.filter((input) => input.type === 'step')
    const others = inputs.filter((input) => input.type !== 'step')
    const later = Array.from({ length: 120 }, (_, index) => gpu(START + 20_000 + index * 1000))
    expect(
      run([...others, runInput({ endedAt: START + 20_000 }), ...steps, ...later]).filter((finding) => finding.subject.run !== null),
    ).toEqual([])
  })

  it('ends with the process, and with the run', () => {
    expect(run(training(120, [], { stepsUntil: 60, gone: 90 })).map((finding) => finding.state)).toEqual(['active', 'resolved'])
    const inputs = training(80, [], { stepsUntil: 60 })
    expect(run([...inputs, runInput({ endedAt: START + 80_000 })]).map((finding) => finding.state)).toEqual(['active', 'resolved'])
  })

  it('allows for steps that are sent in batches', () => {
    const inputs = training(300)
    const late: DetectorInput[] = []
    const held: DetectorInput[] = []
    for (const input of inputs) {
      if (input.type === 'step') held.push(input)
      else late.push(input)
      if (held.length === 20) late.push(...held.splice(0))
    }
    expect(run(late)).toEqual([])
  })

  it('is not deceived by a suspended machine', () => {
    const inputs = training(120)
    const jumped = inputs.map((input) =>
      (timeOf(input) ?? 0) > START + 60_000 && input.type === 'gpu'
        ? gpu(input.sample.at + 900_000)
        : input.type === 'step' && input.step.at > START + 60_000
          ? step(input.step.at + 900_000, input.step.step)
          : input,
    )
    expect(run(jumped)).toEqual([])
  })

  describe('from the GPU alone', () => {
    it('mentions a silence after work', () => {
      const found = run(withoutSteps(training(120, [[60, 90]])))
      expect(found.map((finding) => [finding.state, finding.severity])).toEqual([
        ['active', 'info'],
        ['resolved', 'info'],
      ])
      expect(found[0]?.subject.pid).toBe(1001)
    })

    it('does so no sooner than three times the longest pause before', () => {
      expect(
        run(
          withoutSteps(
            training(200, [
              [40, 46],
              [70, 77],
              [100, 118],
            ]),
          ),
        ),
      ).toEqual([])
    })

    it('does not wait for a process that has ended, nor for one that never worked', () => {
      expect(run(withoutSteps(training(120, [[60, 120]], { gone: 62 })))).toEqual([])
      expect(run(withoutSteps(training(300, [[0, 300]])))).toEqual([])
    })

    it('warns when a long run has been silent for long', () => {
      const found = run(withoutSteps(training(1300, [[900, 1290]])))
      expect(alarms(found).length).toBe(1)
    })

    it('bears with short idle gaps in every second', () => {
      expect(run(withoutSteps(training(300, [], { utilization: (second) => (second % 1 === 0 ? 1 : 0) })))).toEqual([])
    })
  })
})
