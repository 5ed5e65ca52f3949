/** On a machine with an NVIDIA GPU: every value that nvidia-smi also shows, compared at the same time. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const hasGpu = spawnSync('nvidia-smi', ['-L']).status === 0
const SCRIPT = fileURLToPath(new URL('../hardware/compare-nvidia-smi.js', import.meta.url))

it.skipIf(!hasGpu)(`agrees with nvidia-smi${hasGpu ? '' : ' (skipped: there is no NVIDIA GPU on this machine)'}`, () => {
  const { status, stdout } = spawnSync(process.execPath, [SCRIPT], { encoding: 'utf8' })
  expect(stdout).not.toMatch(/^DIFFERS/m)
  expect(status).toBe(0)
})
