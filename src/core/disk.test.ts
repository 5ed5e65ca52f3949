import { execFileSync } from 'node:child_process'
import { mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { open, readFile, writeFile } from './disk.ts'
import { findRecordingFiles, readLines } from './recording/file.ts'
import { readOwnFile } from './system-file.ts'

const PLACES: readonly [string, (path: string) => void, RegExp][] = [
  ['a pipe', (path) => void execFileSync('mkfifo', [path]), /gpu_metrics_1\.jsonl is a pipe, not a file: remove it/],
  ['a device', (path) => symlinkSync('/dev/zero', path), /gpu_metrics_1\.jsonl is a device, not a file: remove it/],
]

describe.each(PLACES)('%s in place of a file of ours', (_what, make, words) => {
  const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-disk-'))
  const path = join(dir, 'gpu_metrics_1.jsonl')
  make(path)

  it.each<[string, () => unknown]>([
    ['read', () => readFile(path, 'utf8')],
    ['read at the start', async () => readOwnFile(path)],
    ['appended to', () => open(path, 'a')],
    ['written', () => writeFile(path, 'x')],
    ['a recording', () => findRecordingFiles(path)],
    ['in a recording', () => findRecordingFiles(dir)],
    ['read line by line', () => readLines(path, () => undefined).next()],
  ])(
    'is refused at once: %s',
    async (_how, use) => {
      await expect(use()).rejects.toThrow(words)
    },
    1000,
  )
})
