import { describe, expect, it } from 'vitest'
import { begin } from '../../../test/fake-nvml/open-fake.ts'
import { parseMeminfo } from '../host-memory.ts'

const MEMINFO = 'MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n'
const HOST = { memoryTotalBytes: 1000 * 1024, memoryUsedBytes: 600 * 1024, memoryFreeBytes: 400 * 1024, memoryReservedBytes: null }

describe('memory', () => {
  it("keeps the driver's reserve apart", async () => {
    const { ticker } = await begin({ script: { gpus: 1, memory_total: 1000, memory_used: 300, memory_reserved: 50 } })
    expect(await ticker.gpu()).toMatchObject({
      memoryTotalBytes: 1000,
      memoryUsedBytes: 300,
      memoryFreeBytes: 650,
      memoryReservedBytes: 50,
    })
  })

  it('says that the reserve is included where only the first version answers', async () => {
    const { ticker, counts } = await begin({
      script: { gpus: 1, memory_total: 1000, memory_used: 300, memory_reserved: 50, ret: ['nvmlDeviceGetMemoryInfo_v2:25'] },
    })
    for (let i = 0; i < 3; i++) expect(await ticker.gpu()).toMatchObject({ memoryUsedBytes: 350, memoryReservedBytes: null })
    expect(ticker.device().unavailable.memoryReservedBytes).toContain('memory used includes it')
    expect((await counts()).nvmlDeviceGetMemoryInfo_v2).toBe(1)
  })

  it.each([
    ['the calls are not supported', { ret: ['nvmlDeviceGetMemoryInfo_v2:3', 'nvmlDeviceGetMemoryInfo:3'] }],
    ['the total is 0', { memory_total: 0, memory_used: 0, memory_reserved: 0 }],
  ])('is the memory of the host where %s', async (_, script) => {
    const { ticker, write } = await begin({ script: { gpus: 1, ...script }, files: { 'proc/meminfo': MEMINFO } })
    expect(ticker.device()).toMatchObject({ unifiedMemory: true, memoryTotalBytes: 1000 * 1024 })
    expect(await ticker.gpu()).toMatchObject(HOST)
    write('proc/meminfo', MEMINFO.replace('400 kB', '300 kB'))
    expect(await ticker.gpu()).toMatchObject({ memoryUsedBytes: 700 * 1024 })
  })

  it('is null with the reason where it is not ours to read', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, ret: ['nvmlDeviceGetMemoryInfo_v2:4'] } })
    for (let i = 0; i < 3; i++) expect(await ticker.gpu()).toMatchObject({ state: 'ok', memoryUsedBytes: null })
    expect(ticker.device()).toMatchObject({ unifiedMemory: false, unavailable: { memoryUsedBytes: 'no permission' } })
    expect((await counts()).nvmlDeviceGetMemoryInfo).toBe(undefined)
  })
})

describe('meminfo', () => {
  it('is null when a line is missing or contradicts another', () => {
    expect(parseMeminfo('MemTotal: 10 kB\n')).toBe(null)
    expect(parseMeminfo('MemTotal: 10 kB\nMemAvailable: 20 kB\n')).toBe(null)
    expect(parseMeminfo('MemTotal: x kB\nMemAvailable: 1 kB\n')).toBe(null)
  })
})
