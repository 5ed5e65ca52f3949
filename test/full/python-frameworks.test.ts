/** The Python SDK inside real PyTorch, transformers, Lightning and Accelerate, where they can be installed in a few minutes. */
import { execFile } from 'node:child_process'
import { existsSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ENVIRONMENT = join(ROOT, '.cache', 'python-frameworks')
const PYTHON = join(ENVIRONMENT, 'bin', 'python')
const IMPORTS = 'import torch, transformers, lightning, accelerate, trl'
const INSTALL_MS = 480_000
const TESTS_MS = 900_000
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

describe('the Python SDK in real frameworks', () => {
  let missing: string | null = null
  beforeAll(async () => {
    missing = await install()
  }, INSTALL_MS + 300_000)

  it(
    'follows PyTorch, transformers, TRL, Lightning and Accelerate, under every launcher',
    async ({ skip }) => {
      if (missing !== null) skip(missing)
      const env = { ...process.env, GPUWARDEN_TEST_NODE: process.execPath, PYTHONDONTWRITEBYTECODE: '1' }
      const said = await run(
        PYTHON,
        ['-m', 'unittest', '-v', 'tests.frameworks_check', 'tests.model_check', 'tests.layers_check', 'tests.host_leak_check'],
        {
          cwd: join(ROOT, 'python'),
          env,
          timeout: TESTS_MS,
          maxBuffer: 1 << 24,
        },
      ).catch((error: Error & { stderr?: string }) => {
        throw new Error(error.stderr || error.message)
      })
      // A launcher that is not installed (deepspeed has to be compiled) is named.
      for (const [line] of said.stderr.matchAll(/^.*skipped '.*$/gm)) console.info(line)
      expect(said.stderr).toMatch(/\nOK(?: \(skipped=\d\))?\n$/)
    },
    TESTS_MS,
  )
})
