// Compiles src/ into dist/. Run by `npm ci` (prepare), `npm start` and the tests; a second run without changes is quick.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const require = createRequire(import.meta.url)

let compiler
try {
  compiler = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc')
} catch {
  // An installed package (no development dependencies) carries dist/ already.
  process.exit(0)
}
if (process.argv.includes('--clean')) rmSync(join(here, 'dist'), { recursive: true, force: true })
const { status } = spawnSync(process.execPath, [compiler, '-p', join(here, 'tsconfig.build.json')], { stdio: 'inherit' })
process.exit(status ?? 1)
