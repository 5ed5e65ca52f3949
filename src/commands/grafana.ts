import { EXIT } from '../core/failure.ts'
import { copyFiles, exportFolder } from './export-files.ts'

export async function grafana(args: readonly string[]): Promise<number> {
  const written = copyFiles({ from: 'grafana/dashboards/', ending: '.json', to: exportFolder('grafana', args) })
  process.stdout.write(
    `${written.join('\n')}\nGrafana: Dashboards → New → Import, or a file provider that points at this folder (docs/grafana.md).\n`,
  )
  return EXIT.ok
}
