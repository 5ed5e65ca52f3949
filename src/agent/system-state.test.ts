import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { isShuttingDown } from './system-state.ts'

afterEach(() => vi.unstubAllEnvs())

it.each([
  ['stopping', 1, true],
  ['running', 0, false],
  ['degraded', 1, false],
])('systemd that is %s', async (state, code, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-systemctl-'))
  writeFileSync(join(folder, 'systemctl'), `#!/bin/sh\necho ${state}\nexit ${code}\n`, { mode: 0o755 })
  vi.stubEnv('PATH', folder)
  expect(await isShuttingDown()).toBe(expected)
  rmSync(folder, { recursive: true })
  expect(await isShuttingDown()).toBe(false)
})
