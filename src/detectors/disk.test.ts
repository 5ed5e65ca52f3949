import { describe, expect, it } from 'vitest'
import { detectorContract, feed } from './detector.contract.ts'
import { disk } from './disk.ts'
import { GIB, host, START } from './inputs.fixture.ts'

/** One host sample each ten seconds, with this share of the disk in use. */
const course = (...used: (number | null)[]) =>
  used.map((ratio, index) => host(START + index * 10_000, { diskFreeBytes: ratio === null ? null : (1 - ratio) * 1000 * GIB }))

detectorContract({ kind: disk, trouble: () => course(...Array(10).fill(0.96), ...Array(10).fill(0.995), ...Array(10).fill(0.5)) })

describe('disk', () => {
  const said = (inputs: Parameters<typeof feed>[1], options = disk.defaults) =>
    feed(disk.create(options), inputs).map(({ state, severity }) => `${state} ${severity}`)

  it('says how full the disk is and what is left', () => {
    const [found] = feed(disk.create(disk.defaults), course(0.96))
    expect(found).toMatchObject({
      fingerprint: 'disk|host=node-1',
      message: 'The disk of the log folder is 96% full; 40.0 GiB left.',
      evidence: { disk_ratio: 0.96, threshold: 0.95 },
    })
  })

  it('is over only below the second level, and critical until it is clearly less', () => {
    expect(said(course(0.94, 0.95, 0.94, 0.935, 0.92))).toEqual(['active warning', 'resolved warning'])
    expect(said(course(0.96, 0.99, 0.986, 0.99, 0.98))).toEqual(['active warning', 'active critical', 'active warning'])
  })

  it('says nothing where the size of the disk is not known, and does not forget what it said', () => {
    expect(said(course(null, null))).toEqual([])
    expect(said([host(START, { diskTotalBytes: 0, diskFreeBytes: 0 })])).toEqual([])
    expect(said(course(0.96, null, 0.5))).toEqual(['active warning', 'resolved warning'])
  })

  it('takes other levels, and never ends what still holds', () => {
    expect(said(course(0.85, 0.75), { ...disk.defaults, fullRatio: 0.8, clearRatio: 0.78 })).toEqual(['active warning', 'resolved warning'])
    expect(said(course(0.85, 0.85), { ...disk.defaults, fullRatio: 0.8, clearRatio: 0.9 })).toEqual(['active warning'])
  })
})
