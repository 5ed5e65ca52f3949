import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { OOM_KILL_LINES, parseKillLine } from './host/oom-kills.ts'
import { type KernelLines, KernelLogFollower } from './kernel-log.ts'
import { XID_LINES } from './nvidia/xid-lines.ts'
import { sourceEnv } from './source.contract.ts'

const KILL = '4,1,2,-;Out of memory: Killed process 4711 (python3) total-vm:1kB\n'
const XID = '4,1,2,-;NVRM: Xid (PCI:0000:11:00): 79, GPU has fallen off the bus.\n'

function kernelLog() {
  const root = mkdtempSync(join(tmpdir(), 'kernel-log-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  mkdirSync(join(root, 'dev'))
  const path = join(root, 'dev/kmsg')
  const logged: string[] = []
  const follow = <Found>(lines: KernelLines<Found>) => {
    const follower = new KernelLogFollower(sourceEnv({ root, log: (level, message) => logged.push(`${level}: ${message}`) }), lines)
    onTestFinished(() => follower.close())
    return (second: number) => follower.read({ at: second * 1000, monotonicMs: second * 1000, tick: second })
  }
  return { path, logged, follow }
}

function timesOpen(path: string): number {
  const targets = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return null
    }
  })
  return targets.filter((target) => target === path).length
}

describe('the kernel log', () => {
  it('is read once, and every source gets its own lines', () => {
    const { path, follow } = kernelLog()
    writeFileSync(path, KILL + XID)
    const kills = follow(OOM_KILL_LINES)
    const xids = follow(XID_LINES)
    expect(timesOpen(path)).toBe(1)
    expect([kills(1), xids(1)]).toEqual([[], []])
    appendFileSync(path, KILL + XID)
    expect(kills(2)).toEqual([{ pid: 4711, name: 'python3', isCgroup: false }])
    expect(xids(2)).toMatchObject([{ code: 79 }])
    expect([kills(3), xids(3)]).toEqual([[], []])
  })

  it('is read as a device with what Node has', () => {
    const { path, follow } = kernelLog()
    expect(spawnSync('mkfifo', [path]).status).toBe(0)
    const device = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    onTestFinished(() => closeSync(device))
    writeSync(device, KILL)
    const kills = follow(OOM_KILL_LINES)
    expect(kills(1)).toEqual([])
    writeSync(device, KILL)
    expect(kills(2)).toHaveLength(1)
  })

  it('that fails is reported once by everybody who follows it', () => {
    const { path, logged, follow } = kernelLog()
    expect(spawnSync('mkfifo', [path]).status).toBe(0)
    const device = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    onTestFinished(() => closeSync(device))
    let answer = -11
    const both = [follow(OOM_KILL_LINES), follow({ ...XID_LINES, readFile: () => answer })]
    for (const read of both) expect(read(1)).toEqual([])
    answer = -5
    for (let second = 2; second < 5; second++) for (const read of both) expect(read(second)).toEqual([])
    expect(logged.map((line) => line.split(':')[0])).toEqual(['warn', 'warn'])
    expect(timesOpen(path)).toBe(1)
  })

  it('that is missing is mentioned, and nothing fails', () => {
    const { logged, follow } = kernelLog()
    expect(follow(OOM_KILL_LINES)(1)).toEqual([])
    expect(logged).toEqual([expect.stringMatching(/^info: the kernel log .* cannot be read: a run that the kernel kills/)])
  })
})

describe('a line of the kernel log', () => {
  it('names a process that was killed because memory ran out', () => {
    const line = '4,1,2,-;Out of memory: Killed process 4711 (python3) total-vm:91234kB, anon-rss:80000kB, UID:1000'
    expect(parseKillLine(line)).toEqual({ pid: 4711, name: 'python3', isCgroup: false })
    const inCgroup = 'Memory cgroup out of memory: Killed process 8 (a b) total-vm:1kB'
    expect(parseKillLine(inCgroup)).toEqual({ pid: 8, name: 'a b', isCgroup: true })
    expect(parseKillLine('systemd: Killed process 9 (x)')).toBe(null)
  })
})
