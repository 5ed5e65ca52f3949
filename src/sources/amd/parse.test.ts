import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseHex, parseInteger, parseName, parsePciAddress, parsePcieGeneration, parsePcieWidth, pciBusId } from '../drm/parse.ts'
import { findName, nameOf } from './names.ts'
import { addressOfLocation, parseClockLevels, parseErrorCounts, parseOverdriveMax, parseTarget, parseUniqueId } from './parse.ts'

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

  it('takes neither 0 nor the clock of the moment as maximum', () => {
    // RX 6600 XT asleep, RX 7600S, RX 7900 XTX above its base clock.
    expect(parseClockLevels('0: 0Mhz *\n')).toEqual({ currentHertz: 0, maxHertz: null })
    expect(parseClockLevels('0: 255Mhz\n1: 0Mhz *\n2: 1841Mhz\n')).toEqual({ currentHertz: 0, maxHertz: 1841e6 })
    expect(parseClockLevels('0: 500Mhz\n1: 2650Mhz *\n2: 2219Mhz\n')).toEqual({ currentHertz: 2650e6, maxHertz: 2219e6 })
  })

  it('finds the star wherever it is', () => {
    const levels = fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 16 })
    fc.assert(
      fc.property(levels, fc.nat(), (megahertz, pick) => {
        const star = pick % megahertz.length
        const text = megahertz.map((value, level) => `${level}: ${value}Mhz ${level === star ? '*' : ''}\n`).join('')
        const real = megahertz.filter((_, level) => level !== star || level === 0 || level === megahertz.length - 1)
        expect(parseClockLevels(text)).toEqual({ currentHertz: (megahertz[star] ?? 0) * 1e6, maxHertz: Math.max(...real) * 1e6 })
      }),
    )
  })
})

describe('overdrive', () => {
  it('takes the highest clock that is set', () => {
    const rdna3 = 'OD_SCLK:\n0: 500Mhz\n1: 2735Mhz\nOD_MCLK:\n0: 97Mhz\n1: 1250MHz\nOD_RANGE:\nSCLK:     500Mhz       5000Mhz\n'
    expect(parseOverdriveMax(rdna3, 'OD_SCLK')).toBe(2735e6)
    expect(parseOverdriveMax(rdna3, 'OD_MCLK')).toBe(1250e6)
    const polaris = 'OD_SCLK:\n0:        300MHz        750mV\n7:       1366MHz       1150mV\nOD_RANGE:\nSCLK:     300MHz       2000MHz\n'
    expect(parseOverdriveMax(polaris, 'OD_SCLK')).toBe(1366e6)
    expect(parseOverdriveMax(polaris, 'OD_MCLK')).toBe(null)
  })

  it('takes an offset for no clock', () => {
    // RX 9070 XT, before and after kernel 6.14.
    for (const offset of ['0: -500Mhz\n1: 1000Mhz\n', '0Mhz\n']) {
      const text = `OD_SCLK_OFFSET:\n${offset}OD_MCLK:\n0: 97Mhz\n1: 1259MHz\nOD_RANGE:\nSCLK_OFFSET:    -500Mhz       1000Mhz\n`
      expect(parseOverdriveMax(text, 'OD_SCLK')).toBe(null)
      expect(parseOverdriveMax(text, 'OD_MCLK')).toBe(1259e6)
    }
    expect(parseOverdriveMax('', 'OD_SCLK')).toBe(null)
  })
})

describe('names', () => {
  const ids = '# List\n\n1.0.0\n73FF,\tC1,\tAMD Radeon RX 6600 XT\n744C,\tC8,\tAMD Radeon RX 7900 XTX of the list\n'

  it('come from the list of libdrm, else from a table, else from the family', () => {
    expect(findName(ids, 0x73ff, 0xc1)).toBe('AMD Radeon RX 6600 XT')
    expect(nameOf(0x744c, 0xc8, () => ids)).toBe('AMD Radeon RX 7900 XTX of the list')
    expect(nameOf(0x744c, 0xc8, () => null)).toBe('AMD Radeon RX 7900 XTX')
    expect(nameOf(0x744c, 0x11, () => ids)).toBe('AMD Radeon RX 7900')
    expect(nameOf(0x4321, 0, () => ids)).toBe('AMD GPU 0x4321')
    expect(nameOf(null, null, () => ids)).toBe('AMD GPU')
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
