import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { logLane } from '../core/disk-lane.ts'
import { LogWriter } from './log-writer.ts'

const folder = () => mkdtempSync(join(tmpdir(), 'gpuwarden-log-'))
const lossLine = (lost: number) => `lost ${lost}\n`
const removedLine = () => 'removed\n'

describe('the writer of the log', () => {
  it('writes lines in their order, and nobody waits', async () => {
    const dir = join(folder(), 'logs')
    const path = join(dir, 'gpu_monitor.log')
    const writer = new LogWriter({ dir, path, maxBytes: 1e6, lossLine, removedLine })
    for (let i = 0; i < 500; i++) writer.write(`${i}\n`)
    expect(await writer.close()).toBe(0)
    expect(readFileSync(path, 'utf8')).toBe(Array.from({ length: 500 }, (_, index) => `${index}\n`).join(''))
  })

  it('sets a file aside that has grown large', async () => {
    const dir = folder()
    const path = join(dir, 'gpu_monitor.log')
    const first = new LogWriter({ dir, path, maxBytes: 10, lossLine, removedLine })
    first.write('more than ten bytes\n')
    await first.close()
    const second = new LogWriter({ dir, path, maxBytes: 10, lossLine, removedLine })
    second.write('new\n')
    await second.close()
    expect([readFileSync(`${path}.1`, 'utf8'), readFileSync(path, 'utf8')]).toEqual(['more than ten bytes\n', 'new\n'])
  })

  it.each(['removed', 'replaced'])('begins again when the file is %s, and says so', async (what) => {
    const dir = folder()
    const path = join(dir, 'gpu_monitor.log')
    const writer = new LogWriter({ dir, path, maxBytes: 1e6, lossLine, removedLine, lookEveryMs: 0 })
    writer.write('before\n')
    await expect.poll(() => readFileSync(path, 'utf8')).toBe('before\n')
    rmSync(path)
    if (what === 'replaced') writeFileSync(path, 'other\n')
    writer.write('after\n')
    await writer.close()
    expect(readFileSync(path, 'utf8')).toBe(`${what === 'replaced' ? 'other\n' : ''}removed\nafter\n`)
  })

  it('keeps so much for a disk that does not answer and no more, and says how many lines were lost', async () => {
    const dir = folder()
    const path = join(dir, 'gpu_monitor.log')
    let answer: () => void = () => undefined
    void logLane.run(path, () => new Promise<void>((resolve) => (answer = resolve)))
    const writer = new LogWriter({ dir, path, maxBytes: 1e6, lossLine, removedLine })
    const line = `${'x'.repeat(99_999)}\n`
    writer.write('first\n')
    await new Promise((resolve) => setTimeout(resolve, 50))
    for (let i = 0; i < 15; i++) writer.write(line)
    expect(await writer.close()).toBe(16)
    answer()
    await expect.poll(() => existsSync(path) && readFileSync(path, 'utf8').startsWith('first\n')).toBe(true)
  })
})
