import { expect, it } from 'vitest'
import type { GpuView } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import { isSimulated } from './alert-record.ts'

const gpus = [{ info: { id: 'SIM', provenance: 'simulated' } }] as GpuView[]
const about = (subject: Partial<Finding['subject']>, provenance: Finding['provenance'] = 'live') =>
  ({ subject: { host: null, gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null, ...subject }, provenance }) as Finding

it('takes what is real beside simulated GPUs for real: a run, the disk of the host', () => {
  expect(isSimulated(about({ run: 'r' }), gpus)).toBe(false)
  expect(isSimulated(about({ run: 'r' }, 'simulated'), gpus)).toBe(true)
  expect(isSimulated(about({ gpu: 'SIM', run: 'r' }), gpus)).toBe(true)
  expect(isSimulated(about({}), gpus)).toBe(false)
  expect(isSimulated(about({}, 'simulated'), gpus)).toBe(true)
})
