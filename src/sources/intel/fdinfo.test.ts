import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseFields } from '../drm/fdinfo.ts'
import { sharesOf } from '../drm/process-use.ts'
import { parseClient } from './fdinfo.ts'

const client = (driver: string, ...lines: string[]) =>
  parseClient(parseFields([`drm-driver:\t${driver}`, 'drm-client-id:\t7', 'drm-pdev:\t0000:03:00.0', ...lines, ''].join('\n')))

describe('fdinfo of xe', () => {
  it('has cycles, and how many have passed', () => {
    const read = client(
      'xe',
      'drm-cycles-rcs:\t100',
      'drm-total-cycles-rcs:\t1000',
      'drm-cycles-vcs:\t30',
      'drm-total-cycles-vcs:\t1000',
      'drm-engine-capacity-vcs:\t2',
      'drm-cycles-ccs:\t5',
    )
    expect(read?.engines).toEqual({
      graphics: { busy: 100, total: 1000, capacity: 1 },
      compute: null,
      encoder: null,
      decoder: { busy: 30, total: 1000, capacity: 2 },
    })
  })

  it('adds up the memory of the tiles, and of the host', () => {
    const lines = ['drm-total-vram0:\t9 MiB', 'drm-resident-vram0:\t8 MiB', 'drm-resident-vram1:\t1 MiB', 'drm-resident-gtt:\t2048 KiB']
    expect(client('xe', ...lines, 'drm-resident-system:\t1024')).toMatchObject({
      ownBytes: 9 * 1024 ** 2,
      borrowedBytes: 2 * 1024 ** 2 + 1024,
    })
    expect(client('xe')).toMatchObject({ ownBytes: null, borrowedBytes: null })
  })
})

describe('fdinfo of i915', () => {
  it('has nanoseconds, and regions of other names', () => {
    const read = client(
      'i915',
      'drm-engine-render:\t500 ns',
      'drm-engine-compute:\t20 ns',
      'drm-engine-video:\t7 ns',
      'drm-engine-capacity-video:\t2',
      'drm-resident-local0:\t512 MiB',
      'drm-resident-stolen-local0:\t8 MiB',
      'drm-resident-system0:\t2048 KiB',
    )
    expect(read).toMatchObject({
      ownBytes: 520 * 1024 ** 2,
      borrowedBytes: 2 * 1024 ** 2,
      engines: {
        graphics: { busy: 500, total: null, capacity: 1 },
        compute: { busy: 20, total: null, capacity: 1 },
        decoder: { busy: 7, total: null, capacity: 2 },
      },
    })
  })
})

describe('shares', () => {
  const at = (busy: number, total: number) => {
    const read = client('xe', `drm-cycles-rcs:\t${busy}`, `drm-total-cycles-rcs:\t${total}`)
    if (read === null) throw new Error('not read')
    return read
  }

  it('are of the cycles that passed, whatever the clock says', () => {
    expect(sharesOf(at(100, 1000), at(600, 2000), 5).graphics).toBe(0.5)
    expect(sharesOf(at(100, 1000), at(100, 1000), 1e9).graphics).toBe(null)
    expect(sharesOf(at(600, 1000), at(100, 2000), 1e9).graphics).toBe(0)
  })
})

describe('other files', () => {
  it('are left alone', () => {
    expect(client('amdgpu', 'drm-engine-gfx:\t1 ns')).toBe(null)
    expect(parseClient(parseFields('pos:\t0\n'))).toBe(null)
    expect(parseClient(parseFields('drm-driver:\txe\ndrm-pdev:\t0000:03:00.0\n'))).toBe(null)
  })

  it('survives any text, and keeps what it reads finite', () => {
    const key = fc.constantFrom('drm-cycles-rcs', 'drm-total-cycles-rcs', 'drm-engine-capacity-rcs', 'drm-resident-vram0', 'drm-total-gtt')
    fc.assert(
      fc.property(fc.array(fc.tuple(key, fc.string())), (lines) => {
        const read = client('xe', ...lines.map(([name, value]) => `${name}:\t${value}`))
        expect(Number.isFinite(read?.ownBytes ?? 0) && Number.isFinite(read?.engines.graphics?.busy ?? 0)).toBe(true)
      }),
    )
  })
})
