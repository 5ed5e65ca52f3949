import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import type { ProcessInfo } from '../core/model.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { device, gpu, host, process, processInfo, START } from './inputs.fixture.ts'
import { zombie } from './zombie.ts'

/** GPU samples each second with a look of the host source every five, showing `found`. */
function watch(
  seconds: number,
  found: (second: number) => ProcessInfo[],
  processes: readonly number[],
  from = 0,
  reason: string | null = null,
): DetectorInput[] {
  return Array.from({ length: seconds }, (_, index) => from + index).flatMap((second) => {
    const at = START + second * 1000
    const infos = found(second)
    const sample = gpu(at, { processes: processes.map((pid) => process(pid)) }, infos)
    return second % 5 === 0 ? [host(at, { processes: infos, processesReason: reason }), sample] : [sample]
  })
}
const other = processInfo(1002)

detectorContract({
  kind: zombie,
  trouble: () => [
    device(),
    ...watch(20, () => [processInfo(1001)], [1001]),
    ...watch(120, () => [], [1001], 20),
    ...watch(20, () => [], [], 140),
  ],
})

describe('zombie', () => {
  const run = (inputs: DetectorInput[]) => feed(zombie.create(zombie.defaults), inputs)

  it('finds memory of a process that was there and is gone', () => {
    const found = run([...watch(20, () => [processInfo(1001)], [1001]), ...watch(70, () => [], [1001], 20)])
    expect(found).toMatchObject([{ severity: 'warning', subject: { pid: 1001, user: 'alice' }, evidence: { state: 'gone' } }])
  })

  it('finds one that was never seen where others are', () => {
    expect(run(watch(70, () => [other], [1001, 1002])).map((finding) => finding.subject.pid)).toEqual([1001])
  })

  it('says nothing where PIDs are of another namespace', () => {
    expect(run(watch(200, () => [], [1001], 0, 'another PID namespace'))).toEqual([])
    expect(run(watch(200, () => [], [1001]))).toEqual([])
  })

  it('finds one that hangs in the kernel, not one that writes a checkpoint', () => {
    expect(run(watch(70, () => [processInfo(1001, { state: 'D' })], [1001]))[0]?.evidence.state).toBe('D')
    expect(run(watch(300, (second) => [processInfo(1001, { state: second % 50 < 40 ? 'D' : 'S' })], [1001]))).toEqual([])
  })

  it('finds one that is dead and not collected', () => {
    expect(run(watch(70, () => [processInfo(1001, { state: 'Z' })], [1001]))[0]?.message).toContain('state Z')
  })

  it('leaves it when the host has not looked since', () => {
    const inputs = [
      ...watch(1, () => [other], [1001, 1002]),
      ...watch(200, () => [other], [1001, 1002], 1).filter((input) => input.type !== 'host'),
    ]
    expect(run(inputs)).toEqual([])
  })
})
