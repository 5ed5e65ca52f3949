/** What goes over PCIe on cards whose driver neither counts the bytes nor has Hopper's counters. */
import type { Device, Readings } from './device.ts'
import { uint32Reading } from './question.ts'

const KIBIBYTE = 1024
const FIELDS = ['pcieTxBytesPerSecond', 'pcieRxBytesPerSecond'] as const

/** The driver measures each direction for 20 ms and does not return before: to be called rarely. */
export function pcieThroughputReader(device: Device): (out: Readings) => void {
  const directions = FIELDS.map((field, selector) => ({
    field,
    read: uint32Reading(device, { symbols: ['nvmlDeviceGetPcieThroughput'], fields: [field], selector }),
  }))
  return (out) => {
    for (const { field, read } of directions) {
      const rate = read()
      out[field] = rate === null ? null : rate * KIBIBYTE
      if (rate !== null) device.unexplain(field)
    }
  }
}
