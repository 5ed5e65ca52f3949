/** Compiles the fake driver library once per machine and per content of its sources. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** `old`: no v2 memory, field values, GPM, MIG or process utilisation. `processes-v2`: the lists stop at _v2. */
export type FakeNvmlVariant = 'current' | 'old' | 'no-gpm' | 'processes-v2'

const DEFINES: Readonly<Record<FakeNvmlVariant, readonly string[]>> = {
  current: [],
  old: ['-DOLD_DRIVER'],
  'no-gpm': ['-DNO_GPM'],
  'processes-v2': ['-DPROCESSES_V2'],
}

const FLAGS = ['-O1', '-shared', '-fPIC', '-fvisibility=hidden', '-Wall', '-Wextra', '-Werror']

/** Path of a library that can be given to `nvmlPath`, `GPUWARDEN_NVML` or `--nvml`. */
export function buildFakeNvml(variant: FakeNvmlVariant = 'current'): string {
  const folder = fileURLToPath(new URL('.', import.meta.url))
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.c') || name.endsWith('.h'))
    .sort()
  const hash = createHash('sha256').update(JSON.stringify([variant, FLAGS, DEFINES[variant], process.arch]))
  for (const name of files) hash.update(name).update(readFileSync(join(folder, name)))
  const cache = join(tmpdir(), `gpuwarden-fake-nvml-${process.getuid?.() ?? 0}`)
  const library = join(cache, `${variant}-${hash.digest('hex').slice(0, 16)}.so`)
  if (existsSync(library)) return library
  mkdirSync(cache, { recursive: true, mode: 0o700 })
  // Compiled aside and renamed: another worker never sees half a library.
  const aside = mkdtempSync(join(cache, 'build-'))
  try {
    const output = join(aside, 'libnvidia-ml.so')
    const sources = files.filter((name) => name.endsWith('.c')).map((name) => join(folder, name))
    const { error, status, stderr } = spawnSync('cc', [...FLAGS, ...DEFINES[variant], '-o', output, ...sources, '-lm'], {
      encoding: 'utf8',
    })
    if (error)
      throw new Error(`the fake driver library needs a C compiler, but \`cc\` could not be run (${error.message}): install gcc or clang`)
    if (status !== 0) throw new Error(`cc could not compile the fake driver library (exit ${status}):\n${stderr}`)
    renameSync(output, library)
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
  return library
}
