// Writes prometheus/rules and prometheus/tests anew: npm run rules.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runnerImport } from 'vite'

const { module } = await runnerImport(fileURLToPath(new URL('generate/files.ts', import.meta.url)))
for (const [name, text] of module.ruleFiles()) {
  const file = fileURLToPath(new URL(name, import.meta.url))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
