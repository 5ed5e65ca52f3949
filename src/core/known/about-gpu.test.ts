import { expect, it } from 'vitest'
import type { FindingSubject } from '../model.ts'
import { isAboutGpu, isGpuOfRun } from './about-gpu.ts'

const real = { id: 'GPU-1', label: '0', index: 0, provenance: 'live', mig: null } as const
const simulated = { ...real, id: 'GPU-SIM-0000', provenance: 'simulated' } as const

it('takes a GPU for that of a run by id, index or label; a simulated one by its id alone', () => {
  expect(['GPU-1', '0', '1'].map((name) => isGpuOfRun(real, name))).toEqual([true, true, false])
  expect(['GPU-SIM-0000', '0'].map((name) => isGpuOfRun(simulated, name))).toEqual([true, false])
  const subject = { gpu: null, gpuIndex: null, run: 'r' } as FindingSubject
  const runs = new Map([['r', { gpus: ['0'] }]])
  expect([isAboutGpu(subject, real, runs), isAboutGpu(subject, simulated, runs)]).toEqual([true, false])
})
