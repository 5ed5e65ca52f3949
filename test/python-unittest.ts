/** The Python SDK's own tests, with this machine's python3 and nothing else, against the real agent. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const PYTHON = fileURLToPath(new URL('../python', import.meta.url))
export const LIMIT_MS = 300_000

/** What unittest said. It fails with its whole output when a test fails, and when one was skipped: everything that is needed is here. */
export async function unittest(...modules: readonly string[]): Promise<string> {
  const env = { ...process.env, GPUWARDEN_TEST_NODE: process.execPath, PYTHONDONTWRITEBYTECODE: '1' }
  const said = await promisify(execFile)('python3', ['-m', 'unittest', ...modules], {
    cwd: PYTHON,
    env,
    timeout: LIMIT_MS,
    maxBuffer: 1 << 24,
  }).catch((error: Error & { stderr?: string }) => {
    throw new Error(error.stderr || error.message)
  })
  return said.stderr
}
