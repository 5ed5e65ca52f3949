import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isSameProcess, isStillRunning, ownIdentity, parseBootTime, parseProcessStat, startTicksOf } from './process-identity.ts'

const statLine = (name: string, fields: Record<number, string | number> = {}) => {
  const rest = Array.from({ length: 50 }, (_, index) => String(fields[index + 3] ?? 0))
  return `42 (${name}) ${rest.join(' ')}\n`
}

describe('/proc/PID/stat', () => {
  it('reads the fields that matter', () => {
    expect(parseProcessStat(statLine('python', { 3: 'R', 4: 7, 14: 120, 15: 30, 22: 5555, 24: 99 }))).toEqual({
      name: 'python',
      state: 'R',
      parentPid: 7,
      cpuTicks: 150,
      startTicks: 5555,
      residentPages: 99,
    })
  })

  it('is not fooled by any name', () => {
    const numbers = fc.record({ parent: fc.nat(), start: fc.nat(), user: fc.nat() })
    const name = fc.oneof(fc.string({ maxLength: 15 }), fc.constantFrom('(sd) pam) x', ') R 1 1', '((', '))', ' ', ''))
    fc.assert(
      fc.property(name, numbers, (comm, { parent, start, user }) => {
        const stat = parseProcessStat(statLine(comm, { 3: 'S', 4: parent, 14: user, 22: start }))
        expect(stat).toMatchObject({ name: comm, state: 'S', parentPid: parent, cpuTicks: user, startTicks: start })
      }),
    )
  })

  it('takes nothing from a line that is cut', () => {
    const line = statLine('python', { 3: 'S' })
    expect(parseProcessStat(line.slice(0, 40))).toBe(null)
    expect(parseProcessStat('')).toBe(null)
    fc.assert(fc.property(fc.string(), (text) => parseProcessStat(text) === null || text.includes('(')))
  })
})

it('knows the start of the machine', () => {
  expect(parseBootTime('cpu  1 1 1 1\nintr 5\nbtime 1760000000\n')).toBe(1760000000)
  expect(parseBootTime('cpu 1')).toBe(null)
})

describe('the identity of a process', () => {
  const own = ownIdentity()

  it('is that of a process that runs, until it ends', async () => {
    const child = spawn('sleep', ['60'])
    const pid = child.pid ?? 0
    const then = { ...own, pid, startTicks: startTicksOf(pid) }
    expect(isSameProcess(then)).toBe(true)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(isSameProcess(then)).toBe(false)
  })

  it('is not that of a process that was given the number later', () => {
    expect(isSameProcess({ ...own, startTicks: (own.startTicks ?? 0) - 1 })).toBe(false)
  })

  it.each([
    ['another boot', { bootId: '00000000-0000-4000-8000-000000000000' }],
    ['another PID namespace', { pidNamespace: 'pid:[1]' }],
  ])('says nothing in %s', (_, change) => {
    expect(isSameProcess({ ...own, ...change })).toBe(null)
  })

  it('goes by the number and the host where there is no /proc', () => {
    const there = ownIdentity('/nonexistent')
    expect(there).toMatchObject({ pid: process.pid, startTicks: null, bootId: null, pidNamespace: null })
    expect(isSameProcess(there, '/nonexistent')).toBe(true)
    expect(isSameProcess({ ...there, host: 'elsewhere' }, '/nonexistent')).toBe(null)
    const dead = spawnSync(process.execPath, ['-e', '']).pid
    expect(isSameProcess({ ...there, pid: dead }, '/nonexistent')).toBe(false)
  })

  it('is read below another root, and a zombie does not run', () => {
    const proc = mkdtempSync(join(tmpdir(), 'gpuwarden-proc-'))
    mkdirSync(join(proc, '42'))
    mkdirSync(join(proc, 'self/ns'), { recursive: true })
    mkdirSync(join(proc, 'sys/kernel/random'), { recursive: true })
    symlinkSync('pid:[7]', join(proc, 'self/ns/pid'))
    writeFileSync(join(proc, 'sys/kernel/random/boot_id'), 'b00t\n')
    writeFileSync(join(proc, '42/stat'), statLine('a) b', { 3: 'S', 22: 5555 }))
    expect(ownIdentity(proc)).toMatchObject({ startTicks: null, bootId: 'b00t', pidNamespace: 'pid:[7]' })
    const then = { ...ownIdentity(proc), pid: 42, startTicks: 5555 }
    expect([isSameProcess(then, proc), isSameProcess({ ...then, startTicks: 5556 }, proc)]).toEqual([true, false])
    writeFileSync(join(proc, '42/stat'), statLine('a) b', { 3: 'Z', 22: 5555 }))
    expect(isStillRunning(42, 5555, proc)).toBe(false)
  })
})
