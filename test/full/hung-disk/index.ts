/** A disk that stops answering, for a program that is started with `env`. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = fileURLToPath(new URL('./hung-disk.c', import.meta.url))
const FLAGS = ['-O1', '-shared', '-fPIC', '-Wall', '-Wextra', '-Werror']

/** Compiled once per machine and content; null with the reason where that, or loading it, is not possible. */
export function buildHungDisk(): { readonly library: string } | { readonly reason: string } {
  if (process.platform !== 'linux') return { reason: 'LD_PRELOAD is for Linux' }
  const hash = createHash('sha256')
    .update(JSON.stringify([FLAGS, process.arch]))
    .update(readFileSync(SOURCE))
    .digest('hex')
  const cache = join(tmpdir(), `gpuwarden-hung-disk-${process.getuid?.() ?? 0}`)
  const library = join(cache, `${hash.slice(0, 16)}.so`)
  if (existsSync(library)) return { library }
  mkdirSync(cache, { recursive: true, mode: 0o700 })
  // Compiled aside and renamed: another worker never sees half a library.
  const aside = mkdtempSync(join(cache, 'build-'))
  try {
    const output = join(aside, 'hung-disk.so')
    const { error, status, stderr } = spawnSync('cc', [...FLAGS, '-o', output, SOURCE, '-ldl'], { encoding: 'utf8' })
    if (error) return { reason: `cc could not be run: ${error.message}` }
    if (status !== 0) throw new Error(`cc could not compile ${SOURCE} (exit ${status}):\n${stderr}`)
    const loaded = spawnSync(process.execPath, ['-e', 'process.exit(7)'], { env: { LD_PRELOAD: output }, encoding: 'utf8' })
    if (loaded.status !== 7 || loaded.stderr.includes('LD_PRELOAD')) return { reason: `LD_PRELOAD does not work here: ${loaded.stderr}` }
    renameSync(output, library)
    return { library }
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

export class HungDisk {
  /** The folder that can stop answering. */
  readonly root: string
  readonly env: NodeJS.ProcessEnv
  readonly #switch: string
  readonly #report: string

  constructor(library: string) {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-hung-'))
    this.root = join(folder, 'disk')
    mkdirSync(this.root)
    this.#switch = join(folder, 'hangs')
    this.#report = join(folder, 'main-thread')
    this.env = {
      LD_PRELOAD: library,
      HUNG_DISK_ROOT: this.root,
      HUNG_DISK_SWITCH: this.#switch,
      HUNG_DISK_REPORT: this.#report,
      // Calls that go through a ring cannot be held here.
      UV_USE_IO_URING: '0',
    }
  }

  hang(): void {
    writeFileSync(this.#switch, '')
  }

  answer(): void {
    rmSync(this.#switch, { force: true })
  }

  /** What a main thread has waited for while the disk hung. */
  mainThreadWaits(): string {
    return existsSync(this.#report) ? readFileSync(this.#report, 'utf8') : ''
  }
}
