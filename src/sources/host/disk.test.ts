import { describe, expect, it } from 'vitest'
import { type DiskSpace, DiskWatch, NO_DISK, readDiskSpace } from './disk.ts'

const SPACE: DiskSpace = { diskTotalBytes: 100, diskFreeBytes: 40 }
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A disk that answers when it is told to. */
function slowDisk() {
  const waiting: ((space: DiskSpace) => void)[] = []
  const watch = new DiskWatch(() => new Promise((resolve) => waiting.push(resolve)))
  return { watch, waiting }
}

describe('the space on the disk', () => {
  it('is asked every ten seconds', async () => {
    let asked = 0
    const watch = new DiskWatch(async () => ({ ...SPACE, diskFreeBytes: 40 - asked++ }))
    await watch.first()
    expect(watch.read(1000).diskFreeBytes).toBe(40)
    expect(watch.read(10_999).diskFreeBytes).toBe(40)
    expect(asked).toBe(1)
    watch.read(11_000)
    await settled()
    expect(watch.read(11_100).diskFreeBytes).toBe(39)
    expect(asked).toBe(2)
  })

  it('is not known while the disk does not answer, and one question waits, not many', async () => {
    const { watch, waiting } = slowDisk()
    await Promise.all([watch.first(), settled().then(() => waiting[0]?.(SPACE))])
    expect(watch.read(0)).toEqual(SPACE)
    for (let at = 10_000; at <= 25_000; at += 1000) expect(watch.read(at)).toEqual(SPACE)
    for (let at = 26_000; at <= 90_000; at += 1000) expect(watch.read(at)).toEqual(NO_DISK)
    expect(waiting).toHaveLength(2)
    waiting[1]?.({ ...SPACE, diskFreeBytes: 7 })
    await settled()
    expect(watch.read(91_000).diskFreeBytes).toBe(7)
    expect(waiting).toHaveLength(3)
  })

  it('does not keep the first sample waiting', async () => {
    const { watch } = slowDisk()
    await watch.first()
    expect(watch.read(0)).toEqual(NO_DISK)
  })

  it('is that of the nearest folder that exists', async () => {
    expect((await readDiskSpace('/nonexistent/a/b')).diskTotalBytes).toBeGreaterThan(0)
  })
})
