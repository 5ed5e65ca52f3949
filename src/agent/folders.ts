/** Where the agent writes, and which of its folders do not answer. */
import { stat as statOutOfTurn } from 'node:fs/promises'
import { resolve } from 'node:path'
import { stat } from '../core/disk.ts'
import { DiskStuck, journalLane, logLane } from '../core/disk-lane.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { alertsFolder } from './alerting.ts'
import type { Config } from './config.ts'

/** Folders that do not answer, such as a network disk whose server is gone: checked before anything waits for them. */
export async function unansweredFolders(config: Config): Promise<readonly string[]> {
  const logDir = logFolder(config)
  const alertsDir = config.values['alerts.enabled'] ? alertsFolder(config.values, logDir) : null
  const askLog = (dir: string) => logLane.patiently(() => stat(dir))
  const askAlerts = (dir: string) => journalLane.patiently(() => journalLane.run(dir, () => statOutOfTurn(dir)))
  const found = await Promise.all([unanswered(logDir, askLog), unanswered(alertsDir, askAlerts)])
  return found.flat()
}

/** null: nothing is written. A replay is not recorded unless a folder is named for it, and never into its own recording. */
export function logFolder({ values, origins }: Config): string | null {
  const dir = values['log.dir']
  if (!values['log.enabled']) return null
  if (!values.source.startsWith('replay:')) return dir
  if (origins['log.dir'].from === 'default') return null
  if (resolve(values.source.slice('replay:'.length)) === resolve(dir))
    throw new Failure(`log.dir is ${dir}, the recording to replay: a log would be written into it`, {
      exitCode: EXIT.usage,
      hint: 'Choose another folder with --log-dir, or leave it out: a replay writes no log by default.',
    })
  return dir
}

export function unansweredNote(dir: string): string {
  return `${dir} does not answer (a network disk whose server is gone?): monitoring continues. Logs are written when it answers; alerts and what detectors learn stay in memory until gpuwarden restarts`
}

async function unanswered(dir: string | null, ask: (dir: string) => Promise<unknown>): Promise<readonly string[]> {
  if (dir === null) return []
  return ask(dir).then(
    () => [],
    (error: unknown) => (error instanceof DiskStuck ? [dir] : []),
  )
}
