/** A fake libnvidia-ml.so and the script that steers it; see README.md for the script's keys. */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export { buildFakeNvml, type FakeNvmlVariant } from './build.ts'

/** A list is written as one line per element for `event`, `ret`, `hang`, `crash`, `delay_us`; joined by commas otherwise. */
export type FakeNvmlValue = string | number | bigint | boolean | readonly (string | number)[]

/** Keys are the script's: `gpus`, `gpu1.temp`, `ret`, …; null takes a key out again. */
export type FakeNvmlValues = Readonly<Record<string, FakeNvmlValue | null>>

export interface FakeNvmlScript {
  readonly path: string
  /** Where the library writes its call counts on nvmlShutdown, and whenever the key `dump` changes. */
  readonly countsPath: string
  /** For a child process, or to assign to process.env: Node passes that on to libc's getenv. */
  readonly env: { readonly FAKE_NVML_SCRIPT: string; readonly FAKE_NVML_COUNTS: string }
  /** Merges with what was set before; the library sees it at its next call, in whatever process. */
  update(values: FakeNvmlValues): void
  /** What the library last dumped: calls by function, and by `function@gpu`. */
  dumped(): Readonly<Record<string, number>>
  /** Deletes the files. */
  remove(): void
}

const ONE_LINE_EACH = new Set(['event', 'ret', 'hang', 'crash', 'delay_us'])

export function fakeNvmlScript(values: FakeNvmlValues = {}): FakeNvmlScript {
  const folder = mkdtempSync(join(tmpdir(), 'fake-nvml-'))
  const path = join(folder, 'script')
  const countsPath = join(folder, 'counts')
  const current = new Map<string, FakeNvmlValue>()
  let revision = 0
  const update = (changes: FakeNvmlValues) => {
    for (const [key, value] of Object.entries(changes)) {
      if (value === null) current.delete(key)
      else current.set(key, value)
    }
    revision = (revision + 1) % 1000
    // The comment's length changes each time, so that the library notices two updates within one tick of the file system's clock.
    const lines = [`#${'.'.repeat(revision)}`]
    for (const [key, value] of current) lines.push(...linesOf(key, value))
    writeFileSync(`${path}.part`, `${lines.join('\n')}\n`)
    renameSync(`${path}.part`, path)
  }
  update(values)
  return {
    path,
    countsPath,
    env: { FAKE_NVML_SCRIPT: path, FAKE_NVML_COUNTS: countsPath },
    update,
    dumped: () => parseCounts(readFileSync(countsPath, 'utf8')),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function linesOf(key: string, value: FakeNvmlValue): string[] {
  if (typeof value === 'boolean') return [`${key}=${value ? 1 : 0}`]
  if (typeof value !== 'object') return [`${key}=${value}`]
  return ONE_LINE_EACH.has(key) ? value.map((one) => `${key}=${one}`) : [`${key}=${value.join(',')}`]
}

/** Calls since nvmlInit of a library loaded in this very process. */
export async function fakeNvmlCounts(library: string): Promise<Readonly<Record<string, number>>> {
  const { default: koffi } = await import('koffi')
  const counts = koffi.load(library).func('const char *fake_nvml_counts(void)')
  return parseCounts(counts() as string)
}

function parseCounts(text: string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const line of text.split('\n')) {
    const space = line.lastIndexOf(' ')
    if (space > 0) counts[line.slice(0, space)] = Number(line.slice(space + 1))
  }
  return counts
}
