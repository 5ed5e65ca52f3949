import { describe, expect, it } from 'vitest'
import { begin, first } from '../../../test/fake-nvml/open-fake.ts'
import { GPU_FIELDS } from '../../core/record.ts'

function total(counts: Readonly<Record<string, number>>, gpu: number): number {
  let sum = 0
  for (const [name, count] of Object.entries(counts)) if (name.endsWith(`@${gpu}`)) sum += count
  return sum
}

describe('a GPU that is lost', () => {
  it('keeps its row, is reported once, is left alone, and the others go on', async () => {
    const { ticker, script, counts } = await begin({ script: { gpus: 3 } })
    await ticker.tick()
    script.update({ lost: [1] })
    const samples = await ticker.tick()
    const [before, lost, after] = samples.filter((sample) => sample.kind === 'gpu')
    expect([before?.state, lost?.state, after?.state]).toEqual(['ok', 'lost', 'ok'])
    expect(lost?.stateReason).toContain('fallen off the bus')
    expect(lost?.processes).toBe(null)
    for (const field of GPU_FIELDS) expect(lost?.[field], field).toBe(null)
    const events = samples.filter((sample) => sample.kind === 'event')
    expect(events).toMatchObject([{ event: 'lost', gpu: lost?.gpu }])

    const made = total(await counts(), 1)
    for (let i = 0; i < 9; i++) expect(await ticker.events()).toEqual([])
    expect(total(await counts(), 1)).toBe(made)
    for (let i = 0; i < 20; i++) await ticker.tick()
    expect(total(await counts(), 1)).toBe(made + 2)
  })

  it('is reported again when it is back, with everything read anew', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, energy: 7000 } })
    await ticker.tick()
    script.update({ reset: [0] })
    expect(await ticker.gpu()).toMatchObject({ state: 'reset_required', slowAt: null, energyJoules: null })
    await ticker.tick(5000)
    script.update({ reset: null })
    expect(await ticker.gpu(1000)).toMatchObject({ state: 'reset_required' })
    const samples = await ticker.tick(10_000)
    expect(samples).toMatchObject([
      { kind: 'event', event: 'recovered' },
      { kind: 'gpu', state: 'ok', energyJoules: 7 },
    ])
    script.update({ lost: [0] })
    expect(await ticker.events()).toMatchObject([{ event: 'lost' }])
  })

  it('may be lost in the middle of a tick', async () => {
    const { ticker, script, counts } = await begin({ script: { gpus: 2 } })
    await ticker.tick()
    const made = total(await counts(), 1)
    script.update({ lost_after: `1:${made + 4}` })
    const [, lost] = await ticker.gpus()
    expect(total(await counts(), 1)).toBe(made + 5)
    expect(lost?.state).toBe('lost')
    expect(lost?.temperatureCelsius).toBe(null)
  })

  it('has a row even when it was lost before the start, and its name once it is back', async () => {
    const { ticker, source, script } = await begin({ script: { gpus: 2, lost: [1] } })
    const atStart = await ticker.tick()
    expect(atStart).toMatchObject([{ state: 'ok' }, { state: 'lost', gpu: 'nvidia-1' }, { event: 'lost', gpu: 'nvidia-1' }])
    expect(await ticker.events()).toEqual([])
    expect(source.devices().map((device) => device.name)).toEqual(['NVIDIA H200', null])
    script.update({ lost: null })
    const id = 'GPU-fa4e0000-0000-4000-8000-000000000001'
    expect(await ticker.tick(10_000)).toMatchObject([{ state: 'ok' }, { event: 'recovered', gpu: id }, { state: 'ok', gpu: id }])
    expect(source.devices().map((device) => device.name)).toEqual(['NVIDIA H200', 'NVIDIA H200'])
    expect(source.devices()[1]?.id).toBe(id)
  })

  it('is in error, with the reason, when every call fails otherwise', async () => {
    const { ticker, script, counts } = await begin({ script: { gpus: 1 } })
    await ticker.tick()
    const called = Object.keys(await counts()).filter((name) => name.startsWith('nvmlDevice') || name.startsWith('nvmlGpm'))
    script.update({ ret: called.filter((name) => !name.includes('@')).map((name) => `${name}:17`) })
    const sample = await ticker.gpu()
    expect(sample).toMatchObject({ state: 'error', temperatureCelsius: null })
    expect(sample.stateReason).toContain('blocked by the operating system')
    script.update({ ret: null })
    expect(await ticker.gpu()).toMatchObject({ state: 'ok' })
  })
})

describe('a sleeping card', () => {
  const files = (status: string, other = 'active') => ({
    'sys/bus/pci/devices/0000:10:00.0/vendor': '0x10de\n',
    'sys/bus/pci/devices/0000:10:00.0/class': '0x030000\n',
    'sys/bus/pci/devices/0000:10:00.0/power/control': 'auto\n',
    'sys/bus/pci/devices/0000:10:00.0/power/runtime_status': `${status}\n`,
    'sys/bus/pci/devices/0000:11:00.0/vendor': '0x10de\n',
    'sys/bus/pci/devices/0000:11:00.0/class': '0x030200\n',
    'sys/bus/pci/devices/0000:11:00.0/power/control': 'auto\n',
    'sys/bus/pci/devices/0000:11:00.0/power/runtime_status': `${other}\n`,
    // Its audio function and another vendor's card: neither counts.
    'sys/bus/pci/devices/0000:10:00.1/vendor': '0x10de\n',
    'sys/bus/pci/devices/0000:10:00.1/class': '0x040300\n',
    'sys/bus/pci/devices/0000:00:02.0/vendor': '0x8086\n',
    'sys/bus/pci/devices/0000:00:02.0/class': '0x030000\n',
  })
  const statusPath = 'sys/bus/pci/devices/0000:10:00.0/power/runtime_status'

  it('is not woken: NVML is initialized only when a card is awake', async () => {
    const { ticker, source, script, write } = await begin({ files: files('suspended', 'suspended'), script: { init: 18 } })
    expect(source.devices().map((device) => device.pciBusId)).toEqual(['00000000:10:00.0', '00000000:11:00.0'])
    expect(source.devices().map((device) => device.name)).toEqual([null, null])
    const asleep = await ticker.gpus()
    expect(asleep.map((sample) => sample.state)).toEqual(['suspended', 'suspended'])
    expect(asleep.every((sample) => sample.temperatureCelsius === null)).toBe(true)
    script.update({ init: null })
    write(statusPath, 'active\n')
    const awake = await ticker.gpus()
    expect(awake.map((sample) => sample.state)).toEqual(['ok', 'suspended'])
    expect(source.devices().map((device) => device.name)).toEqual(['NVIDIA H200', 'NVIDIA H200'])
  })

  it('is not called while another is awake', async () => {
    const { ticker, counts, write } = await begin({ files: files('suspended') })
    const [asleep, awake] = await ticker.gpus()
    expect([asleep?.state, awake?.state]).toEqual(['suspended', 'ok'])
    expect((await counts())['nvmlDeviceGetTemperature@0']).toBe(undefined)
    write(statusPath, 'active\n')
    expect(first(await ticker.gpus()).state).toBe('ok')
    expect(ticker.device().powerLimitWatts).toBe(700)
    write(statusPath, 'suspended\n')
    const made = total(await counts(), 0)
    expect(first(await ticker.gpus()).state).toBe('suspended')
    expect(total(await counts(), 0)).toBe(made)
  })

  it('is read when that was asked for', async () => {
    const { ticker } = await begin({ files: files('suspended', 'suspended'), options: { wake: true } })
    expect((await ticker.gpus()).map((sample) => sample.state)).toEqual(['ok', 'ok'])
  })
})
