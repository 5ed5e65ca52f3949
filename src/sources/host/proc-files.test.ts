import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { isProc, KeptFile } from './proc-files.ts'

const onLinux = describe.runIf(process.platform === 'linux')
const files: KeptFile[] = []
const kept = (path: string, isKept = isProc(path)) => {
  const file = new KeptFile(path, isKept)
  files.push(file)
  return file
}
afterEach(() => {
  for (const file of files.splice(0)) file.close()
})

onLinux('a file of the kernel', () => {
  it('is distinguished from a copy', () => {
    expect(isProc('/proc/stat')).toBe(true)
    expect(isProc('/proc')).toBe(true)
    expect(isProc(tmpdir())).toBe(false)
    expect(isProc('/nonexistent')).toBe(false)
  })

  it('gives what is true now without being opened again', () => {
    const uptime = kept('/proc/uptime')
    const first = uptime.read()
    const open = readdirSync('/proc/self/fd').length
    const start = Date.now()
    while (Date.now() - start < 30);
    expect(uptime.read()).not.toBe(first)
    expect(readdirSync('/proc/self/fd').length).toBe(open)
    uptime.close()
    expect(uptime.read()).not.toBe(null)
  })

  it('is null from the end of its process on', async () => {
    const child = spawn('sleep', ['60'])
    await once(child, 'spawn')
    const stat = kept(`/proc/${child.pid}/stat`)
    expect(stat.read()).toContain(`${child.pid} (`)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(stat.read()).toBe(null)
    expect(stat.read()).toBe(null)
  })
})

describe('a copy', () => {
  it('is opened every time, so that another one in its place is seen', () => {
    const folder = mkdtempSync(join(tmpdir(), 'proc-files-'))
    const path = join(folder, 'stat')
    writeFileSync(path, 'one')
    const file = kept(path, false)
    expect(file.read()).toBe('one')
    writeFileSync(`${path}.new`, 'another')
    renameSync(`${path}.new`, path)
    expect(file.read()).toBe(readFileSync(path, 'utf8'))
    rmSync(folder, { recursive: true })
    expect(file.read()).toBe(null)
  })
})
