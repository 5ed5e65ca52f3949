/** What is on disk and in the agent at the end of a campaign, read from outside. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parseStepLine } from '../../src/core/recording/line.ts'
import { run } from '../program.ts'
import { countStep, type Ledger } from './ledger.ts'

interface RunAnswer {
  readonly runs: readonly { readonly id: string; readonly outcome: string | null; readonly training: { readonly steps: number } | null }[]
}

interface AlertAnswer {
  readonly alerts: readonly {
    readonly fingerprint: string
    readonly state: string
    readonly unconfirmed: boolean
    readonly finding: { readonly severity: string }
  }[]
}

export async function askAgent(url: string, path: string): Promise<unknown> {
  const answer = await fetch(url + path, { signal: AbortSignal.timeout(10_000) })
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`)
  return answer.json()
}

export async function firingAlerts(url: string): Promise<AlertAnswer['alerts']> {
  const { alerts } = (await askAgent(url, '/api/v1/alerts')) as AlertAnswer
  return alerts.filter(({ state }) => state === 'firing')
}

export async function gatherFromAgent(ledger: Ledger, url: string): Promise<void> {
  const { runs } = (await askAgent(url, '/api/v1/runs')) as RunAnswer
  for (const { id, outcome, training } of runs) ledger.runs.set(id, { outcome, steps: training?.steps ?? 0 })
  for (const { fingerprint, unconfirmed } of await firingAlerts(url)) ledger.firing.set(fingerprint, unconfirmed)
}

/** After the agent has stopped. */
export async function gatherFromDisk(ledger: Ledger, logDir: string, spool: string, reports: number): Promise<void> {
  const names = readdirSync(logDir).filter((name) => /^training_metrics_.*\.jsonl(\.gz)?$/.test(name))
  for (const name of names) {
    // While a file is compressed, it and its archive can both be there.
    if (name.endsWith('.gz') && names.includes(name.slice(0, -3))) continue
    const bytes = readFileSync(join(logDir, name))
    for (const line of (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().split('\n')) {
      if (line === '') continue
      const step = parseStepLine(line)
      if (typeof step === 'string') ledger.tornLines++
      else countStep(ledger.stored, step.run, step.rank, step.step)
    }
  }
  try {
    ledger.leftSpools = readdirSync(spool)
  } catch {
    // Nobody ever needed it.
  }
  for (const { ranks } of ledger.played.slice(0, reports)) {
    const id = ranks[0]?.run
    // The report shows the leading rank.
    if (!id || !ledger.runs.has(id) || ranks.length > 1) continue
    const { stdout } = await run(['report', id, '--json', '--log-dir', logDir])
    ledger.reported.set(id, stepsOfReport(stdout))
  }
}

function stepsOfReport(text: string): number {
  const report = JSON.parse(text) as { readonly training?: { readonly steps?: number } | null }
  return report.training?.steps ?? -1
}
