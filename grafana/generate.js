// Writes grafana/dashboards anew: npm run grafana.
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { runnerImport } from 'vite'

const folder = new URL('dashboards/', import.meta.url)
const { module } = await runnerImport(fileURLToPath(new URL('generate/files.ts', import.meta.url)))
mkdirSync(folder, { recursive: true })
for (const [name, text] of module.dashboardFiles()) writeFileSync(new URL(name, folder), text)
