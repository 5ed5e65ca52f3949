import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  countCpus,
  cpuRatioBetween,
  parseCommand,
  parseCpuTimes,
  parseKernelUnits,
  parseLoad,
  parseMemory,
  parsePasswd,
  parseUid,
} from './parse.ts'

describe('/proc/stat', () => {
  it('adds up the times, guest time once', () => {
    expect(parseCpuTimes('cpu  10 1 20 60 5 2 1 1 7 0\ncpu0 1 1 1\n')).toEqual({ total: 100, idle: 65 })
    expect(parseCpuTimes('cpu  10 0 20 60\n')).toEqual({ total: 90, idle: 60 })
    expect(parseCpuTimes('')).toBe(null)
    expect(parseCpuTimes('cpu a b c d e')).toBe(null)
  })

  it('counts processors', () => {
    expect(countCpus('cpu  1 1 1 1\ncpu0 1\ncpu1 1\nintr 5\nbtime 1760000000\n')).toBe(2)
    expect(countCpus('')).toBe(null)
  })

  it('gives a share between 0 and 1 for any two readings', () => {
    const times = fc.record({ total: fc.nat(), idle: fc.nat() })
    fc.assert(
      fc.property(times, times, (before, now) => {
        const ratio = cpuRatioBetween(before, now)
        return now.total <= before.total ? ratio === null : ratio !== null && ratio >= 0 && ratio <= 1
      }),
    )
    expect(cpuRatioBetween({ total: 100, idle: 60 }, { total: 200, idle: 85 })).toBe(0.75)
  })
})

describe('load and memory', () => {
  it('reads them', () => {
    expect(parseLoad('3.52 2.10 1.04 2/1312 4242\n')).toEqual([3.52, 2.1, 1.04])
    expect(parseLoad('')).toEqual([null, null, null])
    expect(parseMemory('MemTotal:  100 kB\nMemAvailable:   40 kB\nSwapTotal:  10 kB\nSwapFree: 4 kB\n')).toEqual({
      memoryTotalBytes: 102400,
      memoryUsedBytes: 61440,
      memoryAvailableBytes: 40960,
      swapTotalBytes: 10240,
      swapUsedBytes: 6144,
    })
    expect(parseMemory('MemTotal:  100 kB\n')).toMatchObject({ memoryTotalBytes: 102400, memoryUsedBytes: null, swapUsedBytes: null })
  })

  it('finds a line wherever it stands, and takes no other for it', () => {
    const names = ['MemTotal', 'MemFree', 'MemAvailable', 'XMemTotal', 'MemTotalX', 'SwapTotal', 'SwapFree', 'SwapCached']
    const lines = fc.uniqueArray(fc.tuple(fc.constantFrom(...names), fc.nat({ max: 2 ** 40 })), { selector: ([name]) => name })
    fc.assert(
      fc.property(lines, (all) => {
        const meminfo = all.map(([name, value]) => `${`${name}:`.padEnd(16)}${String(value).padStart(8)} kB\n`).join('')
        const of = (name: string) => all.find(([one]) => one === name)?.[1] ?? null
        const bytes = (value: number | null) => (value === null ? null : value * 1024)
        expect(parseMemory(meminfo)).toMatchObject({
          memoryTotalBytes: bytes(of('MemTotal')),
          memoryAvailableBytes: bytes(of('MemAvailable')),
          swapTotalBytes: bytes(of('SwapTotal')),
        })
      }),
    )
    for (const junk of ['MemTotal: x kB\n', 'MemTotal:\nMemFree: 5 kB\n', 'MemTotal: -5 kB', 'MemTotal: 12345678901234567890 kB'])
      expect(parseMemory(junk).memoryTotalBytes).toBe(null)
  })
})

describe('who', () => {
  it('reads the real user', () => {
    expect(parseUid('Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n')).toBe(1000)
    expect(parseUid('Name:\tUid: 5\n')).toBe(null)
  })

  it('splits commands, and only so many arguments of them', () => {
    expect(parseCommand('python\0train.py\0\0--x\0')).toEqual(['python', 'train.py', '', '--x'])
    expect(parseCommand('nginx: worker process\0\0\0\0')).toEqual(['nginx: worker process'])
    expect(parseCommand('')).toEqual([])
    expect(parseCommand('a\0'.repeat(1000))).toHaveLength(64)
  })

  it('reads any passwd file: the first name for a number counts', () => {
    const name = fc.stringMatching(/^[a-z_][a-z0-9_-]{0,15}$/)
    const users = fc.array(fc.record({ name, uid: fc.nat(70_000) }), { maxLength: 30 })
    fc.assert(
      fc.property(
        users,
        fc.array(fc.string({ maxLength: 20 }).filter((line) => !/^[^:]+:[^:]*:\d+/.test(line) && !line.includes('\n'))),
        (list, noise) => {
          const lines = list.map((user) => `${user.name}:x:${user.uid}:100::/home/${user.name}:/bin/sh`)
          const names = parsePasswd([...noise, ...lines, ''].join('\n'))
          for (const { uid } of list) expect(names.get(uid)).toBe(list.find((user) => user.uid === uid)?.name)
          expect(names.size).toBe(new Set(list.map((user) => user.uid)).size)
        },
      ),
    )
  })
})

describe('kernel units', () => {
  const auxv = (...words: (readonly [bigint, bigint])[]) => {
    const bytes = Buffer.alloc(words.length * 16)
    for (const [index, [key, value]] of words.entries()) {
      bytes.writeBigUInt64LE(key, index * 16)
      bytes.writeBigUInt64LE(value, index * 16 + 8)
    }
    return bytes
  }

  it('come from the kernel, else are what they are nearly everywhere', () => {
    expect(parseKernelUnits(auxv([33n, 1n], [6n, 65536n], [17n, 250n], [0n, 0n]))).toEqual({ pageBytes: 65536, ticksPerSecond: 250 })
    expect(parseKernelUnits(Buffer.alloc(0))).toEqual({ pageBytes: 4096, ticksPerSecond: 100 })
    expect(parseKernelUnits(auxv([6n, 0n], [17n, 0n]).subarray(0, 30))).toEqual({ pageBytes: 4096, ticksPerSecond: 100 })
  })
})
