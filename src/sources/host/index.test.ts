import { type ChildProcess, spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  rmSync,
  statfsSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import type { HostSample, ProcessInfo } from '../../core/model.ts'
import type { Source, SourceOptions } from '../../core/source-contract.ts'
import { sourceContract, sourceEnv } from '../source.contract.ts'
import { host } from './index.ts'

const FIXTURES = fileURLToPath(new URL('../../../fixtures/host/', import.meta.url))
const HASH = '4f1c0d3e5b7a99826170f4e2d1c3b5a7968877665544332211ffeeddccbbaa00'
const POD = '0f2d7a31-6c1b-4e0a-9d5e-2b8c4d6e8f10'
const ALL = [100, 200, 300, 310, 400, 500, 2, 600, 700, 800, 999]
const cleanups: (() => void)[] = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

function copyOf(name: string): string {
  const root = mkdtempSync(join(tmpdir(), 'gpuwarden-host-'))
  cleanups.push(() => rmSync(root, { recursive: true, force: true }))
  chmodSync(root, 0o755)
  cpSync(join(FIXTURES, name), root, { recursive: true, verbatimSymlinks: true })
  return root
}

async function open(root: string, pids: readonly number[] = [], options: SourceOptions = {}): Promise<Source> {
  const source = await host.open(sourceEnv({ root, options }))
  if (source === null) throw new Error(`no /proc below ${root}`)
  cleanups.push(() => void source.close())
  source.watch?.(pids)
  return source
}

async function read(source: Source, second = 0): Promise<HostSample> {
  const [sample] = await source.read({ at: 1_760_000_000_000 + second * 1000, monotonicMs: second * 1000, tick: second })
  if (sample?.kind !== 'host') throw new Error('expected a host sample')
  return sample
}

async function lookUp(pid: number, root = join(FIXTURES, 'machine')): Promise<ProcessInfo | undefined> {
  return (await read(await open(root, [pid]))).processes[0]
}

sourceContract('host', {
  kind: {
    ...host,
    open: async (env) => {
      const source = await host.open(env)
      source?.watch?.(ALL)
      return source
    },
  },
  gpus: 0,
  present: () => sourceEnv({ root: join(FIXTURES, 'machine'), options: { logDir: tmpdir() } }),
  absent: () => sourceEnv({ root: join(FIXTURES, 'nothing-here') }),
})

describe('the machine', () => {
  it('is read', async () => {
    const root = copyOf('machine')
    const source = await open(root)
    expect(await read(source, 0)).toEqual({
      kind: 'host',
      at: 1_760_000_000_000,
      hostname: 'gpubox',
      cpuRatio: null,
      cpuCount: 4,
      load1: 3.52,
      load5: 2.1,
      load15: 1.04,
      memoryTotalBytes: 65536000 * 1024,
      memoryUsedBytes: (65536000 - 40960000) * 1024,
      memoryAvailableBytes: 40960000 * 1024,
      swapTotalBytes: 8388608 * 1024,
      swapUsedBytes: 262144 * 1024,
      diskTotalBytes: null,
      diskFreeBytes: null,
      processes: [],
      processesReason: null,
    })
    writeFileSync(join(root, 'proc/stat'), 'cpu  1250 0 550 8100 500 0 0 0 200 0\ncpu0 1\n')
    expect((await read(source, 1)).cpuRatio).toBe(0.75)
    expect((await read(source, 2)).cpuRatio).toBe(null)
  })

  it('measures the disk of a folder that is not there yet', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-disk-'))
    cleanups.push(() => rmSync(folder, { recursive: true }))
    const source = await open(join(FIXTURES, 'machine'), [], { logDir: join(folder, 'not', 'there', 'yet') })
    const { blocks, bsize } = statfsSync(folder)
    const sample = await read(source)
    expect(sample.diskTotalBytes).toBe(blocks * bsize)
    expect(sample.diskFreeBytes).toBeGreaterThan(0)
    expect(sample.diskFreeBytes).toBeLessThanOrEqual(sample.diskTotalBytes ?? 0)
  })
})

describe('processes', () => {
  it('are looked up', async () => {
    expect(await lookUp(100)).toEqual({
      pid: 100,
      parentPid: 90,
      startedAt: 1_760_000_000_000 + 2_500_500,
      user: 'alice',
      uid: 1000,
      name: 'python',
      executable: '/usr/bin/python3.11',
      command: ['python', 'train.py', '--epochs', '3'],
      state: 'R',
      cpuRatio: null,
      residentBytes: 262144 * 4096,
      container: null,
      pod: null,
      slurmJob: null,
    })
  })

  it('belong to containers, pods and jobs', async () => {
    expect(await lookUp(200)).toMatchObject({ container: `docker:${HASH}`, pod: null, user: 'root' })
    expect(await lookUp(300)).toMatchObject({ container: `containerd:${HASH}`, pod: POD })
    expect(await lookUp(310)).toMatchObject({ container: `containerd:${HASH}`, pod: POD, executable: null })
    expect(await lookUp(400)).toMatchObject({ container: null, slurmJob: '8812' })
  })

  it('may be odd', async () => {
    expect(await lookUp(500)).toMatchObject({ name: '(sd) pam) x', state: 'S', command: ['(sd-pam)'] })
    expect(await lookUp(2)).toMatchObject({ name: 'kthreadd', parentPid: 0, command: [], executable: null, residentBytes: 0 })
    expect(await lookUp(600)).toMatchObject({ state: 'Z', parentPid: 100, command: [], residentBytes: 0 })
    expect(await lookUp(800)).toMatchObject({ user: null, uid: 4711 })
  })

  it('are left out when they cannot be read or do not exist', async () => {
    const source = await open(join(FIXTURES, 'machine'), [700, 999, 100, -1, 1.5, 100])
    const sample = await read(source)
    expect(sample.processes.map(({ pid }) => pid)).toEqual([100])
    expect(sample.processesReason).toBe(null)
    source.watch?.([200])
    expect((await read(source, 1)).processes.map(({ pid }) => pid)).toEqual([200])
  })

  it('have their cost counted between two reads', async () => {
    const root = copyOf('machine')
    const source = await open(root, [100])
    const stat = (ticks: number, pages: number) =>
      writeFileSync(
        join(root, 'proc/100/stat'),
        `100 (python) R 90 0 0 0 -1 0 0 0 0 0 ${ticks} 300 0 0 20 0 8 0 250050 0 ${pages} ${'0 '.repeat(28)}\n`,
      )
    expect((await read(source, 0)).processes[0]?.cpuRatio).toBe(null)
    stat(1500, 5)
    expect((await read(source, 2)).processes[0]).toMatchObject({ cpuRatio: 1.5, residentBytes: 5 * 4096 })
    stat(1400, 5)
    expect((await read(source, 3)).processes[0]?.cpuRatio).toBe(0)
  })

  it('that reuse a number are others', async () => {
    const root = copyOf('machine')
    const source = await open(root, [100])
    await read(source, 0)
    expect((await read(source, 1)).processes[0]).toMatchObject({ cpuRatio: 0, user: 'alice' })
    for (const file of ['stat', 'status', 'cmdline', 'cgroup']) cpSync(join(root, 'proc/200', file), join(root, 'proc/100', file))
    rmSync(join(root, 'proc/100/exe'))
    expect((await read(source, 2)).processes[0]).toMatchObject({
      pid: 100,
      startedAt: 1_760_000_000_000 + 3_000_000,
      cpuRatio: null,
      user: 'root',
      command: ['python3', 'serve.py'],
      container: `docker:${HASH}`,
      executable: null,
    })
  })

  it('are asked for what seldom changes only now and then', async () => {
    const root = copyOf('machine')
    const source = await open(root, [100])
    await read(source, 0)
    writeFileSync(join(root, 'proc/100/cmdline'), 'changed\0')
    expect((await read(source, 29)).processes[0]?.command?.[0]).toBe('python')
    expect((await read(source, 30)).processes[0]?.command).toEqual(['changed'])
  })

  it('have bounded command lines', async () => {
    const root = copyOf('machine')
    writeFileSync(join(root, 'proc/100/cmdline'), `python\0${'x'.repeat(100_000)}\0`)
    expect((await lookUp(100, root))?.command?.join(' ').length).toBeLessThanOrEqual(4096)
    writeFileSync(join(root, 'proc/100/cmdline'), 'a\0'.repeat(500))
    expect((await lookUp(100, root))?.command).toHaveLength(64)
  })

  it('take their names from passwd as it is now', async () => {
    const root = copyOf('machine')
    const source = await open(root, [800])
    expect((await read(source, 0)).processes[0]?.user).toBe(null)
    writeFileSync(join(root, 'etc/passwd'), 'mallory:x:4711:1::/:/bin/sh\n')
    utimesSync(join(root, 'etc/passwd'), 1, 1)
    expect((await read(source, 60)).processes[0]?.user).toBe('mallory')
    rmSync(join(root, 'etc/passwd'))
    expect((await read(source, 120)).processes[0]).toMatchObject({ user: null, uid: 4711 })
  })

  it('keep to themselves what is not ours to read', async () => {
    const root = copyOf('machine')
    for (const file of ['cmdline', 'status', 'cgroup']) chmodSync(join(root, 'proc/100', file), 0)
    const source = await open(root, [100])
    const isRoot = process.getuid?.() === 0
    if (isRoot) process.seteuid?.(65534)
    try {
      expect((await read(source)).processes[0]).toMatchObject({
        pid: 100,
        name: 'python',
        command: null,
        uid: null,
        user: null,
        container: null,
      })
    } finally {
      if (isRoot) process.seteuid?.(0)
    }
  })
})

describe('in a container with its own numbers', () => {
  it('accepts a number only for a process that has a GPU open', async () => {
    const source = await open(join(FIXTURES, 'container'), [20, 30])
    expect(await read(source)).toMatchObject({ processes: [{ pid: 20 }, { pid: 30 }], processesReason: null })
    source.watch?.([1, 20, 4242])
    const sample = await read(source, 1)
    expect(sample.processes.map(({ pid }) => pid)).toEqual([20])
    expect(sample.processesReason).toContain('--pid=host')
    source.watch?.([])
    expect((await read(source, 2)).processesReason).toBe(null)
  })

  it('looks again, for a GPU may be opened later', async () => {
    const root = copyOf('container')
    const source = await open(root, [1])
    expect((await read(source, 0)).processes).toEqual([])
    symlinkSync('/dev/dri/renderD128', join(root, 'proc/1/fd/7'))
    expect((await read(source, 10)).processes).toMatchObject([{ pid: 1, name: 'bash', command: ['bash'] }])
  })
})

const ownNumbers = readlinkSync('/proc/self/ns/pid') !== 'pid:[4026531836]'

describe.skipIf(ownNumbers)('the real machine (outside of a container)', () => {
  it('knows this process and its child', async () => {
    const before = Date.now()
    const child: ChildProcess = spawn('sleep', ['60'])
    cleanups.push(() => void child.kill('SIGKILL'))
    await new Promise((resolve) => child.once('spawn', resolve))
    const source = await open('/', [process.pid, child.pid ?? -1], { logDir: join(tmpdir(), 'none') })
    const sample = await read(source)
    expect(sample).toMatchObject({ hostname: hostname(), processesReason: null })
    for (const value of [sample.cpuCount, sample.memoryTotalBytes, sample.memoryUsedBytes, sample.diskTotalBytes])
      expect(value).toBeGreaterThan(0)
    const [own, other] = sample.processes
    expect(own).toMatchObject({ pid: process.pid, parentPid: process.ppid, uid: userInfo().uid, executable: process.execPath })
    expect(own?.residentBytes).toBeGreaterThan(10 * 1024 ** 2)
    expect(Math.abs((own?.startedAt ?? 0) - (Date.now() - process.uptime() * 1000))).toBeLessThan(2000)
    expect(other).toMatchObject({
      pid: child.pid,
      parentPid: process.pid,
      name: 'sleep',
      command: ['sleep', '60'],
      user: userInfo().username,
    })
    expect(Math.abs((other?.startedAt ?? 0) - before)).toBeLessThan(2000)
  })

  it('measures what a busy process takes', async () => {
    const source = await open('/', [process.pid])
    const from = performance.now()
    await source.read({ at: 0, monotonicMs: from, tick: 0 })
    const start = process.cpuUsage()
    while (performance.now() < from + 200) Math.sqrt(from)
    const { user, system } = process.cpuUsage(start)
    const to = performance.now()
    const [sample] = await source.read({ at: 1, monotonicMs: to, tick: 1 })
    const ratio = sample?.kind === 'host' ? (sample.processes[0]?.cpuRatio ?? 0) : 0
    const expected = (user + system) / 1000 / (to - from)
    expect(ratio).toBeGreaterThan(expected * 0.5)
    expect(ratio).toBeLessThan(expected * 2 + 0.2)
  })

  it('forgets a process that ended', async () => {
    const child = spawn('true')
    await new Promise((resolve) => child.once('exit', resolve))
    expect((await read(await open('/', [child.pid ?? -1]))).processes).toEqual([])
  })
})

describe('a process that the kernel killed because memory ran out', () => {
  it('is reported on every machine, whatever GPUs it has', async () => {
    const root = copyOf('machine')
    mkdirSync(join(root, 'dev'))
    writeFileSync(join(root, 'dev/kmsg'), '')
    const source = await open(root)
    expect(await source.read({ at: 1000, monotonicMs: 1000, tick: 1 })).toHaveLength(1)
    appendFileSync(join(root, 'dev/kmsg'), '4,1,2,-;Out of memory: Killed process 4711 (python3) total-vm:1kB\n')
    const message = 'the kernel killed python3 (PID 4711): the host ran out of memory'
    const killed = { event: 'oom_kill', gpu: null, code: 4711, message, origin: 'kmsg' }
    expect(await source.read({ at: 2000, monotonicMs: 2000, tick: 2 })).toMatchObject([killed, { kind: 'host' }])
  })
})

describe('a shutdown that systemd has scheduled', () => {
  it('is said once, and again when it is moved or canceled', async () => {
    const root = copyOf('machine')
    const source = await open(root)
    const folder = join(root, 'run/systemd/shutdown')
    const events = async (second: number) =>
      (await source.read({ at: 1_760_000_000_000 + second * 1000, monotonicMs: second * 1000, tick: second })).filter(
        (sample) => sample.kind === 'event',
      )
    const schedule = (micros: string) => writeFileSync(join(folder, 'scheduled'), `USEC=${micros}\nWARN_WALL=1\nMODE=reboot\n`)
    expect(await events(0)).toEqual([])
    mkdirSync(folder, { recursive: true })
    schedule('1760000060000000')
    expect(await events(1)).toMatchObject([{ event: 'shutdown', code: 1_760_000_060_000, message: 'this machine was about to restart' }])
    expect(await events(2)).toEqual([])
    schedule('nonsense')
    expect(await events(3)).toMatchObject([{ event: 'shutdown', code: null }])
    schedule('1760000010000000')
    expect((await events(4)).length).toBe(1)
    rmSync(join(folder, 'scheduled'))
    expect(await events(20)).toEqual([])
  })
})
