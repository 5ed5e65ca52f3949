import { describe, expect, it } from 'vitest'
import { detectorContract, feed } from './detector.contract.ts'
import { gpuLost } from './gpu-lost.ts'
import { device, event, gpu, START, silentGpu } from './inputs.fixture.ts'

const at = (second: number) => START + second * 1000
const lost = (second: number) => silentGpu(at(second), { state: 'lost', stateReason: 'GPU is lost' })

detectorContract({
  kind: gpuLost,
  trouble: () => [device(), ...Array.from({ length: 60 }, (_, index) => (index < 20 || index > 40 ? gpu(at(index)) : lost(index)))],
})

describe('gpu_lost', () => {
  const run = (inputs: Parameters<typeof feed>[1]) => feed(gpuLost.create(gpuLost.defaults), inputs)

  it('is critical at once when a GPU falls off the bus', () => {
    const found = run([device(), ...Array.from({ length: 10 }, (_, index) => gpu(at(index))), lost(10)])
    expect(found).toMatchObject([{ severity: 'critical', at: at(10) }])
    expect(found[0]?.message).toContain('GPU 0 has fallen off the bus')
  })

  it('says nothing in the first seconds', () => {
    expect(run([0, 1, 2, 3].map(lost))).toEqual([])
  })

  it('gives an unreadable GPU half a minute', () => {
    const broken = (seconds: number) =>
      Array.from({ length: seconds }, (_, index) => silentGpu(at(index), { state: 'error', stateReason: 'NVML_ERROR_UNKNOWN' }))
    expect(run(broken(30))).toEqual([])
    expect(run(broken(32))[0]?.severity).toBe('warning')
  })

  it('leaves a sleeping GPU alone', () => {
    expect(run(Array.from({ length: 100 }, (_, index) => silentGpu(at(index), { state: 'suspended' })))).toEqual([])
  })

  it('passes on what the driver wants done', () => {
    const asked = Array.from({ length: 10 }, (_, index) => gpu(at(index), { recoveryAction: 2 }))
    expect(run(asked)[0]).toMatchObject({ severity: 'warning', message: expect.stringContaining('reboot the server') })
  })

  it('notices a GPU that is no longer reported while another is', () => {
    const inputs = [device(), device({ id: 'GPU-1', index: 1, label: '1' })]
    for (let second = 0; second < 200; second++) {
      inputs.push(gpu(at(second)))
      if (second < 50 || second > 150) inputs.push(gpu(at(second), { gpu: 'GPU-1' }))
    }
    const found = run(inputs)
    expect(found.map((finding) => [finding.state, finding.subject.gpu])).toEqual([
      ['active', 'GPU-1'],
      ['resolved', 'GPU-1'],
    ])
    expect(found[0]?.message).toContain('GPU 1')
  })

  it('does not miss anybody when the clock jumps', () => {
    const inputs = [device(), device({ id: 'GPU-1', index: 1, label: '1' })]
    for (let second = 0; second < 100; second++) {
      const time = at(second) + (second > 50 ? 200_000 : 0)
      inputs.push(gpu(time), gpu(time, { gpu: 'GPU-1' }))
    }
    expect(run(inputs)).toEqual([])
  })

  it('hears of it by an event as well, and of the recovery', () => {
    const found = run([device(), gpu(at(0)), event(at(1), { event: 'lost', code: null }), event(at(2), { event: 'recovered', code: null })])
    expect(found.map((finding) => finding.state)).toEqual(['active', 'resolved'])
  })
})
