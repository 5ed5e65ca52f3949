import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * How another process starts this program: where it came in a package that brings its own Node.js, by that package's command (which says so
 * in GPUWARDEN_LAUNCHER), because files beside it may move with the next version.
 */
export function launchCommand(env: NodeJS.ProcessEnv = process.env): readonly [string, ...string[]] {
  const launcher = env.GPUWARDEN_LAUNCHER
  if (launcher) return [launcher]
  return [process.execPath, realpathSync(fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url)))]
}
