import { describe, expect, it } from 'vitest'
import { DiskLane, DiskStuck } from './disk-lane.ts'

/** A call that returns when it is told to. */
function held<T>(value: T) {
  let release: () => void = () => undefined
  const call = () =>
    new Promise<T>((resolve) => {
      release = () => resolve(value)
    })
  return { call, release: () => release() }
}

describe('a lane', () => {
  it('begins at once when it is free, and has one call under way, in the order they came', async () => {
    const lane = new DiskLane()
    const begun: number[] = []
    const first = held('first')
    const all = [
      lane.run('a', () => {
        begun.push(1)
        return first.call()
      }),
      lane.run('b', async () => begun.push(2)),
      lane.run('c', async () => begun.push(3)),
    ]
    expect(begun).toEqual([1])
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(begun).toEqual([1])
    first.release()
    expect(await Promise.all(all)).toEqual(['first', 2, 3])
    expect(lane.waitedMs()).toBe(0)
  })

  it('goes on after a call that failed, or could not even be made', async () => {
    const lane = new DiskLane()
    const fails = lane.run('a', async () => {
      throw new Error('EIO')
    })
    const throws = lane.run('b', () => {
      throw new TypeError('no such flag')
    })
    await expect(fails).rejects.toThrow('EIO')
    await expect(throws).rejects.toThrow('no such flag')
    expect(await lane.run('c', async () => 'fine')).toBe('fine')
  })

  it('gives up waiting for a call that does not return, names what it was, and refuses others at once until it does', async () => {
    const lane = new DiskLane()
    const dead = held('late')
    const call = lane.run('/net/logs/x', dead.call)
    await expect(lane.patiently(() => call, 20)).rejects.toThrow(/not responded .*\/net\/logs\/x/)
    let isBegun = false
    const other = lane.patiently(async () => {
      isBegun = true
    }, 20)
    await expect(other).rejects.toBeInstanceOf(DiskStuck)
    expect(isBegun).toBe(false)
    dead.release()
    expect(await call).toBe('late')
    expect(lane.stuck(1)).toBe(null)
    expect(await lane.patiently(async () => 'fine', 20)).toBe('fine')
  })

  it('does not give up on work that takes long while the disk answers', async () => {
    const lane = new DiskLane()
    const slow = async () => {
      for (let i = 0; i < 8; i++) await lane.run('x', () => new Promise((resolve) => setTimeout(resolve, 10)))
      return 'done'
    }
    expect(await lane.patiently(slow, 60_000)).toBe('done')
    await expect(lane.patiently(async () => Promise.reject(new Error('its own')), 60_000)).rejects.toThrow('its own')
  })
})
