import { describe, expect, it } from 'vitest'
import { detectorContract, feed } from './detector.contract.ts'
import { idleHolding } from './idle-holding.ts'
import { device, GIB, gpu, process, processInfo, START } from './inputs.fixture.ts'

const MINUTE = 60_000
const series = (minutes: number, overrides: (minute: number) => object, from = 0) =>
  Array.from({ length: minutes }, (_, index) => gpu(START + (from + index) * MINUTE, overrides(from + index), [processInfo(1001)]))
const idle = () => ({ utilizationRatio: 0 })

detectorContract({
  kind: idleHolding,
  trouble: () => [device(), ...series(5, () => ({})), ...series(60, idle, 5), ...series(5, () => ({}), 65)],
})

describe('idle_holding', () => {
  const run = (inputs: Parameters<typeof feed>[1]) => feed(idleHolding.create(idleHolding.defaults), inputs)

  it('needs the whole half hour without one moment of work', () => {
    expect(run(series(30, idle))).toEqual([])
    expect(run(series(32, idle))[0]).toMatchObject({ severity: 'info', subject: { pid: 1001, user: 'alice' } })
    expect(run(series(200, (minute) => ({ utilizationRatio: minute % 25 === 24 ? 0.01 : 0 })))).toEqual([])
  })

  it('warns after two hours', () => {
    expect(run(series(119, idle)).every((finding) => finding.severity === 'info')).toBe(true)
    expect(run(series(125, idle)).at(-1)).toMatchObject({ severity: 'warning' })
  })

  it('gives a server a whole day, because it rests and works again', () => {
    const server = (minute: number) => ({ utilizationRatio: minute < 60 && minute % 10 === 0 ? 0.5 : 0 })
    const quiet = run(series(60 + 23 * 60, server))
    expect(quiet.length).toBeGreaterThan(0)
    expect(quiet.every((finding) => finding.severity === 'info')).toBe(true)
    expect(run(series(60 + 25 * 60, server)).at(-1)).toMatchObject({ severity: 'warning' })
  })

  it('leaves small holders alone', () => {
    expect(run(series(60, () => ({ ...idle(), processes: [process(1001, { memoryUsedBytes: GIB - 1 })] })))).toEqual([])
  })

  it('finds the idle one beside a busy one where processes are measured separately', () => {
    const both = () => ({ utilizationRatio: 0.9, processes: [process(1001, { smRatio: 0.9 }), process(1002, { smRatio: 0 })] })
    expect(run(series(40, both)).map((finding) => finding.subject.pid)).toEqual(expect.arrayContaining([1002]))
    expect(run(series(40, both)).every((finding) => finding.subject.pid === 1002)).toBe(true)
  })

  it('does not guess which of two works where they are not measured separately', () => {
    expect(run(series(60, () => ({ utilizationRatio: 0.9, processes: [process(1001), process(1002)] })))).toEqual([])
  })

  it('knows that no process works on an idle GPU', () => {
    const found = run(series(40, () => ({ ...idle(), processes: [process(1001), process(1002)] })))
    expect(new Set(found.map((finding) => finding.subject.pid))).toEqual(new Set([1001, 1002]))
  })

  it('takes unknown utilization for unknown', () => {
    expect(run(series(60, () => ({ utilizationRatio: null })))).toEqual([])
  })

  it('reports the GPU where there is no process list', () => {
    expect(run(series(40, () => ({ ...idle(), processes: null })))[0]?.subject).toMatchObject({ pid: null, gpu: 'GPU-0' })
  })

  it('does not count hours that it did not see', () => {
    expect(run([...series(5, idle), ...series(5, idle, 600)])).toEqual([])
  })
})
