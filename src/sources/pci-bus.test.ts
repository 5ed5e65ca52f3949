import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { faultOfSource } from './driver-fault.ts'
import { PciBus } from './pci-bus.ts'

/** Of `0000:ADDRESS`: vendor, class, and the driver that it is bound to. */
type Functions = Readonly<Record<string, readonly [vendor: string, pciClass: string, driver?: string]>>

function busOf(functions: Functions, physical: readonly string[] = []) {
  const root = mkdtempSync(join(tmpdir(), 'pci-bus-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const [address, [vendor, pciClass, driver]] of Object.entries(functions)) {
    const folder = join(root, 'sys/bus/pci/devices', `0000:${address}`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'vendor'), `${vendor}\n`)
    writeFileSync(join(folder, 'class'), `${pciClass}\n`)
    writeFileSync(join(folder, 'device'), '0x1234\n')
    if (driver !== undefined) symlinkSync(`../../drivers/${driver}`, join(folder, 'driver'))
    if (physical.includes(address)) symlinkSync('../0000:01:00.0', join(folder, 'physfn'))
  }
  return { root, bus: new PciBus(root) }
}

const usesOf = (bus: PciBus) => bus.cards().map(({ vendor, busId, use }) => [vendor, busId.slice(9), use])

describe('the PCI bus', () => {
  it('shows display controllers and processing accelerators of supported vendors, and nothing else', () => {
    const { bus } = busOf({
      '01:00.0': ['0x10de', '0x030000', 'nvidia'],
      '01:00.1': ['0x10de', '0x040300', 'snd_hda_intel'],
      '01:00.2': ['0x10de', '0x0c0330', 'xhci_hcd'],
      '02:00.0': ['0x10de', '0x030200', 'nvidia'],
      '03:00.0': ['0x10de', '0x068000', 'nvidia-nvswitch'],
      '04:00.0': ['0x1002', '0x120000', 'amdgpu'],
      '05:00.0': ['0x1002', '0x038000', 'amdgpu'],
      '06:00.0': ['0x1a03', '0x030000', 'ast'],
      '07:00.0': ['0x102b', '0x030000', 'mgag200'],
      '08:00.0': ['0x1af4', '0x030000', 'virtio-pci'],
    })
    expect(usesOf(bus)).toEqual([
      ['nvidia', '01:00.0', 'driven'],
      ['nvidia', '02:00.0', 'driven'],
      ['amd', '04:00.0', 'driven'],
      ['amd', '05:00.0', 'driven'],
    ])
  })

  it('tells what a card is used for by its driver', () => {
    const { bus } = busOf({
      '01:00.0': ['0x10de', '0x030200'],
      '02:00.0': ['0x10de', '0x030200', 'nouveau'],
      '03:00.0': ['0x10de', '0x030200', 'vfio-pci'],
      '04:00.0': ['0x10de', '0x030200', 'pci-stub'],
      '05:00.0': ['0x10de', '0x030200', 'nvgrace_gpu_vfio_pci'],
      '06:00.0': ['0x1002', '0x030000', 'radeon'],
      '07:00.0': ['0x1002', '0x030000'],
    })
    expect(usesOf(bus).map(([, , use]) => use)).toEqual(['undriven', 'undriven', 'vm', 'vm', 'vm', 'display', 'undriven'])
  })

  it('leaves virtual functions to the machines that they are made for, where they are cards', () => {
    const functions: Functions = { '01:00.0': ['0x10de', '0x030200', 'nvidia'], '01:00.4': ['0x10de', '0x030200'] }
    expect(usesOf(busOf(functions, ['01:00.4']).bus)).toHaveLength(1)
    expect(usesOf(busOf(functions).bus)).toHaveLength(2)
  })

  it('sees a card that comes, goes, or gets another driver', () => {
    const { root, bus } = busOf({ '01:00.0': ['0x10de', '0x030200'] })
    const folder = join(root, 'sys/bus/pci/devices/0000:01:00.0')
    symlinkSync('../../drivers/nvidia', join(folder, 'driver'))
    expect(usesOf(bus)).toEqual([['nvidia', '01:00.0', 'driven']])
    rmSync(folder, { recursive: true })
    expect(bus.cards()).toEqual([])
  })

  it('is empty where there is none', () => {
    expect(new PciBus('/nowhere').cards()).toEqual([])
  })
})

describe('a vendor that found nothing', () => {
  const kindOf = (functions: Functions, name: string) => faultOfSource(name, null, busOf(functions).root)?.kind ?? null

  it.each<[string, Functions, string, string | null]>([
    ['has no card', {}, 'nvidia', null],
    ['has a card without a driver', { '01:00.0': ['0x10de', '0x030000'] }, 'nvidia', 'no_driver'],
    ['has a card on another driver', { '01:00.0': ['0x10de', '0x030000', 'nouveau'] }, 'nvidia', 'no_driver'],
    ['has a driver whose device files are not here', { '01:00.0': ['0x10de', '0x030000', 'nvidia'] }, 'nvidia', 'no_device_files'],
    ['has given its card to a VM', { '01:00.0': ['0x10de', '0x030000', 'vfio-pci'] }, 'nvidia', null],
    ['has a display chip that its driver shows', { '01:00.0': ['0x1002', '0x030000', 'radeon'] }, 'amd', null],
    ['has a chip that is bound to its driver', { '01:00.0': ['0x1002', '0x030000', 'amdgpu'] }, 'amd', null],
    ['has only cards of another vendor', { '01:00.0': ['0x1002', '0x030000'] }, 'nvidia', null],
  ])('%s', (_name, functions, vendor, kind) => {
    expect(kindOf(functions, vendor)).toBe(kind)
  })
})
