import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { choosePastFiles, type PastFile, pacedLines } from './past-files.ts'
import { temporaryDir } from './sink.contract.ts'

async function linesOf(file: PastFile): Promise<string[]> {
  const lines: string[] = []
  for await (const line of pacedLines(file)) lines.push(line)
  return lines
}

describe('files of earlier runs', () => {
  it('are those of one stream, the newest first, a file and its compressed twin once', async () => {
    const dir = await temporaryDir()
    for (const name of ['findings_20250730_100000.jsonl.gz', 'findings_20250730_110000.jsonl.gz', 'other_20250730_110000.jsonl'])
      await writeFile(join(dir, name), gzipSync('a\n'))
    await writeFile(join(dir, 'findings_20250730_110000.jsonl'), 'a\nb')
    await writeFile(join(dir, 'gpu_metrics_20250730_110000.jsonl'), 'a\n')
    const files = await choosePastFiles(dir, 'findings', 0, 1e6)
    expect(files.map(({ name }) => name)).toEqual(['findings_20250730_110000.jsonl', 'findings_20250730_100000.jsonl.gz'])
    expect(await Promise.all(files.map(linesOf))).toEqual([['a', 'b'], ['a']])
    expect(await choosePastFiles(dir, 'findings', Date.now() + 60_000, 1e6)).toEqual([])
  })

  it('are read to their end although they were compressed since they were chosen', async () => {
    const dir = await temporaryDir()
    const path = join(dir, 'findings_20250730_110000.jsonl')
    await writeFile(path, 'a\nb\n')
    const [file] = await choosePastFiles(dir, 'findings', 0, 1e6)
    if (!file) throw new Error('the file that was just written is chosen')
    await writeFile(`${path}.gz`, gzipSync('a\nb\n'))
    await rm(path)
    expect(await linesOf(file)).toEqual(['a', 'b'])
    await rm(`${path}.gz`)
    await expect(linesOf(file)).rejects.toThrow('ENOENT')
  })
})
