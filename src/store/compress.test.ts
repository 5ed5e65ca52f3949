import { appendFile, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { compressFile } from './compress.ts'
import { temporaryDir } from './sink.contract.ts'

const NAME = 'gpu_metrics_20250730_120000.jsonl'
const TEXT = '{"timestamp":"2025-07-30T12:00:00.000Z"}\n'.repeat(20_000)

describe('compressing a closed file', () => {
  it('puts the .gz in its place, with its time', async () => {
    const dir = await temporaryDir()
    const path = join(dir, NAME)
    await writeFile(path, TEXT, { mode: 0o640 })
    await utimes(path, 1_753_877_000, 1_753_877_000)
    expect(await compressFile(path, new AbortController().signal)).toBe(true)
    expect(await readdir(dir)).toEqual([`${NAME}.gz`])
    expect(gunzipSync(await readFile(`${path}.gz`)).toString()).toBe(TEXT)
    const { mtimeMs, mode } = await stat(`${path}.gz`)
    expect(mtimeMs).toBe(1_753_877_000_000)
    expect(mode & 0o777).toBe(0o640)
  })

  it('leaves a file alone that is still being written', async () => {
    const dir = await temporaryDir()
    const path = join(dir, NAME)
    await writeFile(path, TEXT)
    const compressing = compressFile(path, new AbortController().signal)
    for (let round = 0; round < 3; round++) await appendFile(path, 'more\n')
    expect(await compressing).toBe(false)
    expect(await readdir(dir)).toEqual([NAME])
  })

  it('leaves no half of a file behind when it is stopped', async () => {
    const dir = await temporaryDir()
    const path = join(dir, NAME)
    await writeFile(path, TEXT)
    const stop = new AbortController()
    const compressing = compressFile(path, stop.signal)
    setImmediate(() => stop.abort())
    await expect(compressing).rejects.toThrow()
    expect(await readdir(dir)).toEqual([NAME])
  })
})
