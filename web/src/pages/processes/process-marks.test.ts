import { describe, expect, it } from 'vitest'
import type { Finding, FindingSubject, ProcessView, Run } from '../../../../src/core/model.ts'
import { findingsByPid, marksOf } from './process-marks.ts'

const finding = (detector: string, subject: Partial<FindingSubject>) =>
  ({ detector, severity: 'warning', message: `${detector}!`, subject: { gpu: null, pid: null, run: null, ...subject } }) as Finding

const process = (pid: number, state = 'S') => ({ pid, gpu: 'G0', info: { state } }) as ProcessView

const labels = (one: ProcessView, findings: readonly Finding[], runs = new Map<string, Run>()) =>
  marksOf(one, findingsByPid(findings, runs)).map(({ label }) => label)

describe('marksOf', () => {
  it('marks intruders, idle holders, zombies, leaks and coming OOMs', () => {
    const all = ['intruder', 'idle_holding', 'zombie', 'leak', 'oom', 'thermal'].map((name) => finding(name, { pid: 7, gpu: 'G0' }))
    expect(labels(process(7), all)).toEqual(['intruder', 'idle holder', 'zombie', 'leak', 'OOM ahead'])
  })

  it('says it of this process on this GPU only', () => {
    const found = [finding('intruder', { pid: 8, gpu: 'G0' }), finding('intruder', { pid: 7, gpu: 'G1' })]
    expect(labels(process(7), found)).toEqual([])
  })

  it('knows the process of a run', () => {
    const runs = new Map([['r', { id: 'r', pid: 7 } as unknown as Run]])
    expect(labels(process(7), [finding('oom', { run: 'r' }), finding('leak', { run: 'other' })], runs)).toEqual(['OOM ahead'])
  })

  it('takes the state of dead processes from the kernel', () => {
    expect(labels(process(7, 'Z'), [])).toEqual(['zombie'])
    expect(labels(process(7, 'Z'), [finding('zombie', { pid: 7 })])).toEqual(['zombie'])
  })
})
