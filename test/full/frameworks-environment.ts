/** PyTorch and what is built on it, in one environment under .cache/ for all tests that need it, kept between runs. */
import { execFile } from 'node:child_process'
import { existsSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ENVIRONMENT = join(ROOT, '.cache', 'python-frameworks')
const PYTHON = join(ENVIRONMENT, 'bin', 'python')
const IMPORTS = 'import torch, transformers, lightning, accelerate, trl'
export const INSTALL_MS = 480_000
/** PyTorch for CUDA, as PyPI has it for Linux, takes 6 GB on disk. */
const NEEDED_BYTES = 12 * 1024 ** 3

async function works(): Promise<boolean> {
  return (
    existsSync(PYTHON) &&
    (await run(PYTHON, ['-c', IMPORTS], { timeout: 120_000 }).then(
      () => true,
      () => false,
    ))
  )
}

/** The interpreter that has them, or why there is none. GPUWARDEN_TEST_TORCH_PYTHON names one that is there already. */
export async function pythonWithFrameworks(): Promise<{ readonly python: string } | { readonly missing: string }> {
  const given = process.env.GPUWARDEN_TEST_TORCH_PYTHON
  if (given) return { python: given }
  const missing = await install()
  return missing === null ? { python: PYTHON } : { missing }
}

/** Why they are not here; null when they are. */
async function install(): Promise<string | null> {
  if (await works()) return null
  const { bavail, bsize } = statfsSync(ROOT)
  if (bavail * bsize < NEEDED_BYTES) return `less than ${NEEDED_BYTES / 1024 ** 3} GiB of disk is free`
  const end = Date.now() + INSTALL_MS
  const pip = (...args: string[]) =>
    run(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...args], {
      timeout: Math.max(1000, end - Date.now()),
      maxBuffer: 1 << 24,
    })
  try {
    rmSync(ENVIRONMENT, { recursive: true, force: true })
    await run('python3', ['-m', 'venv', ENVIRONMENT], { timeout: 120_000 })
    // The build without CUDA is a tenth of the size; its index is not everywhere to be reached.
    await pip('--retries', '0', '--timeout', '10', '--index-url', 'https://download.pytorch.org/whl/cpu', 'torch').catch(() => undefined)
    await pip('torch', 'transformers', 'lightning', 'accelerate', 'trl', 'datasets', 'uv')
    return (await works()) ? null : 'they were installed but cannot be imported'
  } catch (error) {
    rmSync(ENVIRONMENT, { recursive: true, force: true })
    return `they cannot be installed here within ${INSTALL_MS / 60_000} minutes: ${(error as Error).message.slice(0, 300)}`
  }
}
