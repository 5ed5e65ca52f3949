import { describe, expect, it } from 'vitest'
import { VENDORS, vendorOfModel } from './vendors.ts'

describe('vendorOfModel', () => {
  it.each([
    ['NVIDIA H100 80GB HBM3', 'nvidia'],
    ['Tesla V100-SXM2-16GB', 'nvidia'],
    ['AMD Instinct MI300X', 'amd'],
    ['Radeon RX 7900 XTX', 'amd'],
    ['NVIDIA Jetson AGX Orin Developer Kit', 'jetson'],
    ['Intel Arc B580', 'intel'],
    ['Intel Data Center GPU Max 1550', 'intel'],
    ['Simulated H100', 'nvidia'],
    [null, 'nvidia'],
  ])('of %j is %s', (model, vendor) => {
    expect(vendorOfModel(model)).toBe(vendor)
  })
})

describe('every vendor', () => {
  it.each(VENDORS.map((vendor) => [vendor.name, vendor] as const))('%s loads a source of its own name', async (name, vendor) => {
    expect((await vendor.load()).name).toBe(name)
  })
})
