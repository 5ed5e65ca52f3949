/** Python packages for a test, in an environment of their own under .cache/, kept between runs. */
import { execFile } from 'node:child_process'
import { existsSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface PythonPackages {
  /** The folder under .cache/. */
  readonly name: string
  readonly packages: readonly string[]
  /** A statement that fails where they are not usable. */
  readonly imports: string
  readonly installMs: number
  readonly neededBytes: number
}

/** The interpreter that has them, or why there is none. */
export async function pythonWith(wanted: PythonPackages): Promise<{ readonly python: string } | { readonly missing: string }> {
  const environment = join(ROOT, '.cache', wanted.name)
  const python = join(environment, 'bin', 'python')
  const works = () => run(python, ['-c', wanted.imports], { timeout: 120_000 })
  if (existsSync(python) && (await isFine(works()))) return { python }
  const { bavail, bsize } = statfsSync(ROOT)
  if (bavail * bsize < wanted.neededBytes) return { missing: `less than ${wanted.neededBytes / 1024 ** 3} GiB of disk is free` }
  try {
    rmSync(environment, { recursive: true, force: true })
    await run('python3', ['-m', 'venv', environment], { timeout: 120_000 })
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '1', ...wanted.packages]
    await run(python, install, { timeout: wanted.installMs, maxBuffer: 1 << 24 })
    await works()
    return { python }
  } catch (error) {
    rmSync(environment, { recursive: true, force: true })
    const reason = (error as Error).message.slice(0, 300)
    return { missing: `${wanted.packages.join(', ')} cannot be installed here within ${wanted.installMs / 60_000} minutes: ${reason}` }
  }
}

function isFine(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  )
}
