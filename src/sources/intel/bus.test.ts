import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { writeTree } from '../drm/tree.fixture.ts'
import { PciBus } from '../pci-bus.ts'

const roots: string[] = []
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true })
})

/** Intel functions by address: their class, and the driver that they are bound to. */
function bus(functions: Readonly<Record<string, readonly [pciClass: string, driver: string | null]>>): PciBus {
  const root = mkdtempSync(join(tmpdir(), 'gpuwarden-bus-'))
  roots.push(root)
  for (const [address, [pciClass, driver]] of Object.entries(functions)) {
    const folder = join(root, 'sys/bus/pci/devices', address)
    mkdirSync(folder, { recursive: true })
    writeTree(folder, { vendor: '0x8086', device: '0x4680', class: pciClass })
    if (driver !== null) symlinkSync(`../../../bus/pci/drivers/${driver}`, join(folder, 'driver'))
  }
  return new PciBus(root)
}

describe('Intel graphics on the bus', () => {
  it('is no fault without a driver inside a processor, and is one on a card', () => {
    const cards = bus({
      '0000:00:02.0': ['0x030000', null],
      '0000:03:00.0': ['0x030000', null],
      '0000:04:00.0': ['0x038000', 'xe'],
    }).cards()
    expect(cards.map(({ busId, use }) => [busId, use])).toEqual([
      ['00000000:00:02.0', 'display'],
      ['00000000:03:00.0', 'undriven'],
      ['00000000:04:00.0', 'driven'],
    ])
  })

  it('is not the network, nor the accelerator inside a processor', () => {
    expect(bus({ '0000:00:0b.0': ['0x120000', 'intel_vpu'], '0000:00:1f.6': ['0x020000', 'e1000e'] }).cards()).toEqual([])
  })
})
