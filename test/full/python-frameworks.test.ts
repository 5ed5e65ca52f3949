/** The Python SDK inside real PyTorch, transformers, Lightning and Accelerate, where they can be installed in a few minutes. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { INSTALL_MS, pythonWithFrameworks } from './frameworks-environment.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TESTS_MS = 900_000

describe('the Python SDK in real frameworks', () => {
  let python = ''
  let missing: string | null = null
  beforeAll(async () => {
    const found = await pythonWithFrameworks()
    if ('python' in found) python = found.python
    else missing = found.missing
  }, INSTALL_MS + 300_000)

  it(
    'follows PyTorch, transformers, TRL, Lightning and Accelerate, under every launcher',
    async ({ skip }) => {
      if (missing !== null) skip(missing)
      const check = (...names: string[]) =>
        run(python, ['-m', 'unittest', '-v', ...names], {
          cwd: join(ROOT, 'python'),
          env: { ...process.env, GPUWARDEN_TEST_NODE: process.execPath, PYTHONDONTWRITEBYTECODE: '1' },
          timeout: TESTS_MS,
          maxBuffer: 1 << 24,
        }).catch((error: Error & { stderr?: string }) => {
          throw new Error(error.stderr || error.message)
        })
      // A leak of host memory takes minutes in which little is computed: beside the others.
      const all = await Promise.all([
        check('tests.frameworks_check', 'tests.model_check', 'tests.layers_check'),
        check('tests.host_leak_check'),
      ])
      for (const { stderr } of all) {
        // A launcher that is not installed (deepspeed has to be compiled) is named.
        for (const [line] of stderr.matchAll(/^.*skipped '.*$/gm)) console.info(line)
        expect(stderr).toMatch(/\nOK(?: \(skipped=\d\))?\n$/)
      }
    },
    TESTS_MS,
  )
})
