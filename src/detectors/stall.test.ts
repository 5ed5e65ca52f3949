import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import type { RunHang } from '../core/model.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { alarms, device, GIB, gpu, process, processInfo, run as runInput, START, step, timeOf } from './inputs.fixture.ts'
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
const isPaused = (at: number) => at >= START + 60_000 && at < START + 90_000
const HANG: RunHang = {
  kind: 'behind',
  at: 0,
  sentence: 'rank 3 is in data.py:7; 7 ranks wait for it in all_reduce #5',
  culprits: [3],
  waiting: [0, 1, 2, 4, 5, 6, 7],
  place: 'data.py:7',
  isStuck: true,
}
/** The ranks say at this second where they stand. */
function withHang(inputs: DetectorInput[], second: number, more: Partial<RunHang> = {}): DetectorInput[] {
  const at = START + second * 1000
  const index = inputs.findIndex((input) => (timeOf(input) ?? 0) >= at)
  return [...inputs.slice(0, index), runInput({ id: 'run-1', hang: { ...HANG, at, ...more } }), ...inputs.slice(index)]
}
const withoutSteps = (inputs: DetectorInput[]) => inputs.filter((input) => input.type !== 'step')

detectorContract({ kind: stall, trouble: () => training(120, [[60, 90]]) })

describe('stall', () => {
  const run = (inputs: DetectorInput[]) => feed(stall.create(stall.defaults), inputs)

  it('reports after ten step times and the grace, and ends with the next step', () => {
    const found = run(training(120, [[60, 90]]))
    expect(found.map((finding) => finding.state)).toEqual(['active', 'resolved'])
    const silent = ((found[0]?.at ?? 0) - (START + 59_100)) / 1000
    expect(silent).toBeGreaterThan(11.8)
    expect(silent).toBeLessThan(12.5)
    expect(found[0]).toMatchObject({ severity: 'warning', subject: { run: 'run-1' }, evidence: { last_step: 59 } })
    expect(found[1]?.at).toBe(START + 90_100)
  })

  it('is said once more when it becomes known where, and not again', () => {
    const found = run(withHang(training(120, [[60, 90]]), 80))
    expect(found.map(({ state, evidence }) => [state, evidence.place ?? null])).toEqual([
      ['active', null],
      ['active', 'data.py:7'],
      ['resolved', 'data.py:7'],
    ])
    expect(found[1]).toMatchObject({ since: found[0]?.since, severity: 'warning', evidence: { culprit_ranks: '3', waiting_ranks: 7 } })
    // What was said of an earlier standstill says nothing of this one.
    expect(run(withHang(training(120, [[60, 90]]), 50))[0]?.evidence.place).toBeUndefined()
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

    it('nor by one at full power that reads no memory', () => {
      const inputs = training(120, [[60, 90]], { utilization: () => 1, watts: () => 550 }).map((input) =>
        input.type === 'gpu'
          ? { ...input, sample: { ...input.sample, memoryUtilizationRatio: isPaused(input.sample.at) ? 0.01 : 0.4 } }
          : input,
      )
      expect(severities(inputs)[0]).toEqual(['active', 'warning'])
      expect(severities(training(120, [[60, 90]], { utilization: () => 1, watts: () => 550 }))[0]).toEqual(['active', 'info'])
    })

    it('nor when its ranks say that nobody moves, as soon as they do', () => {
      const spinning = () => training(120, [[60, 90]], { utilization: () => 1, watts: () => 550 })
      const early = run(withHang(spinning(), 62))
      expect(alarms(early).map(({ at }) => (at - START) / 1000)).toEqual(
        alarms(run(training(120, [[60, 90]]))).map(({ at }) => (at - START) / 1000),
      )
      expect(early[0]?.message).toBe(
        'Run run-1 stands still: rank 3 is in data.py:7; 7 ranks wait for it in all_reduce #5. No step for 12 s after step 59, usually one every 1 s.',
      )
      const late = run(withHang(spinning(), 80))
      expect(late.map(({ severity }) => severity)).toEqual(['info', 'warning', 'warning'])
      const saving = run(withHang(spinning(), 62, { isStuck: false }))
      expect(saving.map(({ severity }) => severity)).toEqual(['info', 'info'])
      expect(saving[0]?.message).toMatch(/as in an evaluation: rank 3 is in data.py:7; .*#5\. No step for 12 s/)
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

    it('takes a pause like one before for another, until it lasts half as long again', () => {
      const pauses: [number, number][] = [
        [60, 100],
        [211, 390],
      ]
      const told = run(training(400, pauses))
      const again = told.filter((one, i) => one.state !== told[i - 1]?.state || one.severity !== told[i - 1]?.severity)
      expect(again.map((finding) => [finding.state, finding.severity])).toEqual([
        ['active', 'warning'],
        ['resolved', 'warning'],
        ['active', 'info'],
        ['active', 'warning'],
        ['resolved', 'warning'],
      ])
      expect(again[0]).toMatchObject({
        confidence: 0.75,
        message: expect.stringMatching(/^Run run-1 has stalled: .* This is its first pause/),
      })
      expect(again[2]?.message).toMatch(/makes no steps; an earlier pause lasted 41 s/)
      expect(((again[3]?.at ?? 0) - START) / 1000 - 210.1).toBeCloseTo(1.5 * 41, 0)
    })

    it('takes a round step and the end of an epoch for a place where people evaluate, for two minutes', () => {
      expect(new Set(severities(training(300, [[100, 190]])).map(([, severity]) => severity))).toEqual(new Set(['info']))
      expect(run(training(300, [[100, 190]]))[0]?.message).toMatch(/pauses after step 99, a round number, as for an evaluation/)
      expect(
        alarms(run(training(300, [[100, 290]])))
          .map((finding) => (finding.at - START) / 1000 - 99.1)
          .slice(0, 1),
      ).toEqual([expect.closeTo(120, 0)])
      const withEpochs = (perEpoch: number) =>
        training(200, [[84, 150]]).map((input) =>
          input.type === 'step' ? step(input.step.at, input.step.step, { epoch: (input.step.step + 1) / perEpoch }) : input,
        )
      expect(run(withEpochs(42))[0]?.message).toMatch(/pauses at the end of an epoch/)
      expect(severities(withEpochs(60))[0]).toEqual(['active', 'warning'])
    })

    it('does not call a step round where only every tenth is reported', () => {
      const tenths = training(400, [[101, 390]]).map((input) => (input.type === 'step' ? step(input.step.at, 10 * input.step.step) : input))
      expect(run(tenths)[0]).toMatchObject({ severity: 'warning', evidence: { last_step: 1000 } })
    })

    it('takes a process that works on the host while the GPU rests for one that saves, but not one that waits for a busy GPU', () => {
      const withCores = (cores: number, inputs: DetectorInput[]) =>
        inputs.map((input, index) =>
          input.type === 'gpu' ? gpu(input.sample.at, input.sample, [processInfo(1001, { cpuRatio: cores + 0.001 * (index % 7) })]) : input,
        )
      const resting = withCores(0.97, training(120, [[60, 90]]))
      expect(run(resting)[0]).toMatchObject({ severity: 'info', message: expect.stringMatching(/works on the host \(9\d% of a core\)/) })
      expect(severities(withCores(0.02, training(120, [[60, 90]])))[0]).toEqual(['active', 'warning'])
      const spinning = training(120, [[60, 90]], { utilization: () => 1, watts: (second) => (second >= 60 && second < 90 ? 150 : 600) })
      expect(severities(withCores(1, spinning))[0]).toEqual(['active', 'warning'])
    })

    it('knows whose run it is though it was announced before its first step', () => {
      expect(run([runInput({ user: 'alice' }), ...training(120, [[60, 90]])])[0]?.subject.user).toBe('alice')
    })
  })

  it('knows the end of a run from a stall: the process is gone', () => {
    expect(run(training(120, [], { stepsUntil: 60, gone: 62 }))).toEqual([])
  })

  describe('beside another run that has said as little of itself', () => {
    /** Two GPUs with a run each; the first one's process goes at `gone`, and the second GPU does `other`. */
    const pair = (gone: number, other: (second: number) => { utilizationRatio: number; powerWatts: number }, isSteppingOn = true) => {
      const inputs: DetectorInput[] = [device(), device({ id: 'GPU-1', index: 1, label: '1' })]
      for (let half = 0; half < 400; half++) {
        const second = half / 2
        const at = START + second * 1000
        const isThere = second < gone
        const first = { utilizationRatio: isThere ? 0.9 : 0, memoryUsedBytes: isThere ? 20 * GIB : 0 }
        inputs.push(gpu(at, { ...first, processes: isThere ? [process(1001)] : [] }))
        inputs.push(gpu(at, { gpu: 'GPU-1', processes: [process(2002)], ...other(second) }))
        if (half % 2 === 0 && second < 80) inputs.push(step(at + 100, half))
        if (half % 2 === 1 && (second < 80 || isSteppingOn)) inputs.push(step(at + 100, half, { run: 'run-2' }))
      }
      return inputs
    }
    const busy = () => ({ utilizationRatio: 0.9, powerWatts: 400 })

    it('takes a process that is gone for the end of the run', () => {
      expect(run(pair(81, busy))).toEqual([])
    })

    it('still sees a stall when the process stays, or when what is left waits for a rank that was lost', () => {
      const own = (inputs: DetectorInput[]) => run(inputs).filter((finding) => finding.subject.run === 'run-1')
      expect(own(pair(1000, busy)).map((finding) => finding.state)).toContain('active')
      const waiting = (second: number) => ({ utilizationRatio: 1, powerWatts: second < 80 ? 400 : 120 })
      expect(alarms(own(pair(81, waiting))).length).toBeGreaterThan(0)
      expect(own(pair(81, busy, false)).length).toBeGreaterThan(0)
    })

    it('reports nothing before the sample that shows the process gone', () => {
      const inputs: DetectorInput[] = [device(), device({ id: 'GPU-1', index: 1, label: '1' })]
      for (let second = 0; second < 120; second++) {
        const at = START + second * 1000
        if (second % 5 === 0) {
          inputs.push(gpu(at, { processes: [process(1001)] }))
          inputs.push(
            gpu(at, second < 65 ? { gpu: 'GPU-1', processes: [process(2002)] } : { gpu: 'GPU-1', processes: [], memoryUsedBytes: 0 }),
          )
        }
        for (const ms of [100, 400, 700]) {
          if (at + ms < START + 60_000) inputs.push(step(at + ms, 10 * second + ms / 100, { run: 'run-2' }))
          inputs.push(step(at + ms + 50, 10 * second + ms / 100))
        }
      }
      expect(run(inputs)).toEqual([])
    })

    it('knows its own process where it said so', () => {
      const gone = pair(81, () => ({ utilizationRatio: 0, powerWatts: 90 }), false)
      expect(run([runInput({ pid: 1001 }), ...gone]).filter((finding) => finding.subject.run === 'run-1')).toEqual([])
      expect(run(gone).filter((finding) => finding.subject.run === 'run-1').length).toBeGreaterThan(0)
    })
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
