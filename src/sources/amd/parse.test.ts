import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addressOfLocation,
  parseClockLevels,
  parseErrorCounts,
  parseHex,
  parseInteger,
  parseName,
  parsePciAddress,
  parsePcieGeneration,
  parsePcieWidth,
  parseTarget,
  parseUniqueId,
  pciBusId,
} from './parse.ts'

describe('numbers', () => {
  it('reads what the kernel prints and nothing else', () => {
    expect(parseInteger('87\n')).toBe(87)
    expect(parseInteger('-5000\n')).toBe(-5000)
    for (const text of ['', '\n', ' ', 'N/A', '1e3', '0x10', '12 34', '1.5']) expect(parseInteger(text)).toBe(null)
    expect(parseHex('0x744c\n')).toBe(0x744c)
    expect(parseHex('744c')).toBe(null)
  })

  it('gives back any integer it is shown', () => {
    fc.assert(fc.property(fc.maxSafeInteger(), (value) => parseInteger(`${value}\n`) === value))
  })

  it('never makes a number of arbitrary text', () => {
    fc.assert(fc.property(fc.string(), (text) => parseInteger(text) === null || /^-?\d+$/.test(text.trim())))
  })
})

describe('clock levels', () => {
  it('takes the starred level as current and the highest as maximum', () => {
    expect(parseClockLevels('0: 500Mhz \n1: 2304Mhz *\n2: 2482Mhz \n')).toEqual({ currentHertz: 2304e6, maxHertz: 2482e6 })
    expect(parseClockLevels('S: 19Mhz *\n0: 300Mhz \n')).toEqual({ currentHertz: 19e6, maxHertz: 300e6 })
    expect(parseClockLevels('0: 500Mhz\n')).toEqual({ currentHertz: null, maxHertz: 500e6 })
    expect(parseClockLevels('')).toEqual({ currentHertz: null, maxHertz: null })
  })

  it('finds the star wherever it is', () => {
    const levels = fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 16 })
    fc.assert(
      fc.property(levels, fc.nat(), (megahertz, pick) => {
        const star = pick % megahertz.length
        const text = megahertz.map((value, level) => `${level}: ${value}Mhz ${level === star ? '*' : ''}\n`).join('')
        expect(parseClockLevels(text)).toEqual({ currentHertz: (megahertz[star] ?? 0) * 1e6, maxHertz: Math.max(...megahertz) * 1e6 })
      }),
    )
  })
})

describe('links', () => {
  it('knows the generations', () => {
    const speeds = ['2.5 GT/s PCIe', '5.0 GT/s PCIe', '8.0 GT/s PCIe', '16.0 GT/s PCIe', '32.0 GT/s PCIe', '64.0 GT/s PCIe']
    expect(speeds.map(parsePcieGeneration)).toEqual([1, 2, 3, 4, 5, 6])
    expect(parsePcieGeneration('16 GT/s')).toBe(4)
    expect(parsePcieGeneration('Unknown')).toBe(null)
    expect(parsePcieGeneration('7 GT/s')).toBe(null)
  })

  it('takes no width from a link that does not answer', () => {
    expect(parsePcieWidth('16\n')).toBe(16)
    expect(parsePcieWidth('0\n')).toBe(null)
    expect(parsePcieWidth('255\n')).toBe(null)
  })
})

describe('errors and names', () => {
  it('reads error counts', () => {
    expect(parseErrorCounts('ue: 1\nce: 12\n')).toEqual({ uncorrected: 1, corrected: 12 })
    expect(parseErrorCounts('ue: 0\nce: 3\nde: 4\n')).toEqual({ uncorrected: 0, corrected: 3 })
    expect(parseErrorCounts('')).toEqual({ uncorrected: null, corrected: null })
  })

  it('drops padding from names', () => {
    expect(parseName('AMD INSTINCT\u0000\u0000\n')).toBe('AMD INSTINCT')
    expect(parseName('\n')).toBe(null)
  })

  it('takes only real numbers as identity', () => {
    expect(parseUniqueId('5F3AC1D09E774B21\n')).toBe('5f3ac1d09e774b21')
    expect(parseUniqueId('0000000000000000\n')).toBe(null)
    expect(parseUniqueId('')).toBe(null)
    expect(parseUniqueId('N/A')).toBe(null)
  })
})

describe('addresses', () => {
  it('spells them as the model does', () => {
    expect(pciBusId('0000:8d:00.0')).toBe('00000000:8D:00.0')
    expect(parsePciAddress('0000:8D:00.0\n')).toBe('0000:8d:00.0')
    expect(parsePciAddress('amdgpu_xcp_1')).toBe(null)
  })

  it('makes an address of any kfd location', () => {
    const [domain, bus, device, fn] = [fc.nat(0xffff), fc.nat(0xff), fc.nat(0x1f), fc.nat(7)]
    fc.assert(
      fc.property(domain, bus, device, fn, (d, b, s, f) => {
        const address = addressOfLocation(d, (b << 8) | (s << 3) | f)
        expect(parsePciAddress(address)).toBe(address)
        const [hexDomain, hexBus, rest = ''] = address.split(':')
        const [hexDevice, func] = rest.split('.')
        expect([hexDomain, hexBus, hexDevice, func].map((part) => Number.parseInt(part ?? '', 16))).toEqual([d, b, s, f])
      }),
    )
  })

  it('names targets as the compiler does', () => {
    expect([90010, 90402, 110000, 100300, 0].map(parseTarget)).toEqual(['gfx90a', 'gfx942', 'gfx1100', 'gfx1030', null])
  })
})
