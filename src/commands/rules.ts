import { join } from 'node:path'
import { EXIT } from '../core/failure.ts'
import { copyFiles, exportFolder } from './export-files.ts'

const RUNBOOKS = 'docs/runbooks/'

export async function rules(options: Record<string, unknown>, args: readonly string[]): Promise<number> {
  const to = exportFolder('rules', args)
  const base = options.runbookUrl === undefined ? 'runbooks/' : `${String(options.runbookUrl).replace(/\/+$/, '')}/`
  const written = [
    ...copyFiles({
      from: 'prometheus/rules/',
      ending: '.yml',
      to,
      change: (text) => text.replaceAll(`runbook_url: ${RUNBOOKS}`, `runbook_url: ${base}`),
    }),
    ...copyFiles({ from: RUNBOOKS, ending: '.md', to: join(to, 'runbooks') }),
  ]
  process.stdout.write(`${written.join('\n')}\nPrometheus: add ${join(to, '*.yml')} to rule_files (docs/prometheus.md).\n`)
  return EXIT.ok
}
