import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The end-to-end tests run the built program; building here means that they never run an old one. */
export function setup(): void {
  if (process.env.GPUWARDEN_SKIP_BUILD === '1') return
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const { status } = spawnSync(process.execPath, ['build.js'], { cwd: root, stdio: 'inherit' })
  if (status !== 0) throw new Error('the build failed: see the compiler messages above')
}
