import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseFields } from '../drm/fdinfo.ts'
import { parseClient } from './fdinfo.ts'
import { parseProperties } from './kfd.ts'

const parseFdinfo = (text: string) => parseClient(parseFields(text))
const client = (...lines: string[]) =>
  parseFdinfo(['pos:\t0', 'drm-driver:\tamdgpu', 'drm-client-id:\t7', 'drm-pdev:\t0000:03:00.0', ...lines, ''].join('\n'))

describe('fdinfo', () => {
  it('reads memory in whatever unit it is given', () => {
    expect(client('drm-memory-vram:\t2048 KiB')?.ownBytes).toBe(2 * 1024 ** 2)
    expect(client('drm-memory-vram:\t3 MiB')?.ownBytes).toBe(3 * 1024 ** 2)
    expect(client('drm-memory-vram:\t4096')?.ownBytes).toBe(4096)
    expect(client('drm-memory-vram:\t5 parsecs')?.ownBytes).toBe(null)
    expect(client()?.ownBytes).toBe(null)
  })

  it('prefers what is resident to what was asked for', () => {
    expect(client('drm-total-vram:\t300 MiB', 'drm-resident-vram:\t256 MiB')?.ownBytes).toBe(256 * 1024 ** 2)
    expect(client('drm-total-vram:\t300 MiB')?.ownBytes).toBe(300 * 1024 ** 2)
  })

  it('reads the engines', () => {
    const read = client(
      'drm-engine-gfx:\t10 ns',
      'drm-engine-compute:\t20 ns',
      'drm-engine-enc:\t1 ns',
      'drm-engine-enc_1:\t2 ns',
      'drm-engine-dec:\t4 ns',
    )
    const work = (busy: number) => ({ busy, total: null, capacity: 1 })
    expect(read?.engines).toEqual({ graphics: work(10), compute: work(20), encoder: work(3), decoder: work(4) })
    expect(client()?.engines).toEqual({ graphics: null, compute: null, encoder: null, decoder: null })
  })

  it('reads what kernels before 5.19 wrote', () => {
    const old = parseFdinfo('pos:\t0\npdev:\t0000:29:00.0\npasid:\t32771\nvram mem:\t2048 kB\ngtt mem:\t1024 kB\n')
    expect(old).toMatchObject({
      address: '0000:29:00.0',
      client: '32771',
      ownBytes: 2 * 1024 ** 2,
      borrowedBytes: 1024 ** 2,
      engines: { graphics: null },
    })
  })

  it('leaves other files alone', () => {
    expect(parseFdinfo('pos:\t0\nflags:\t02\n')).toBe(null)
    expect(parseFdinfo('drm-driver:\ti915\ndrm-client-id:\t7\ndrm-pdev:\t0000:00:02.0\n')).toBe(null)
    expect(parseFdinfo('drm-driver:\tamdgpu\ndrm-pdev:\t0000:00:02.0\n')).toBe(null)
  })

  it('survives any text, and gives back what was written', () => {
    fc.assert(fc.property(fc.string(), (text) => parseFdinfo(text) === null || text.includes(':')))
    fc.assert(
      fc.property(fc.nat(2 ** 40), fc.nat(), (kibibytes, work) => {
        const read = client(`drm-memory-vram:\t${kibibytes} KiB`, `drm-engine-gfx:\t${work} ns`)
        expect(read).toMatchObject({ ownBytes: kibibytes * 1024, engines: { graphics: { busy: work } } })
      }),
    )
  })
})

describe('kfd properties', () => {
  it('reads names and numbers', () => {
    expect(parseProperties('simd_count 192\nlocation_id 768\nname abc\n\n')).toEqual(
      new Map([
        ['simd_count', 192],
        ['location_id', 768],
      ]),
    )
  })
})
