/** The last words of a process that ended while no agent answered: they wait in its spool file, which this user's agent can read itself. */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { homeLane } from '../core/disk-lane.ts'
import { parseJson } from '../core/recording/json.ts'
import type { RunEnd } from './run-record.ts'
import { runEnd } from './schemas.ts'

const BATCH_LINES = 1000

export interface SpoolTaker {
  postSteps(id: string, body: Buffer): Promise<unknown>
  keepReport(id: string, report: Readonly<Record<string, unknown>>): Promise<boolean>
  endRun(id: string, end: RunEnd): Promise<unknown>
}

/** Takes in what processes of this run left; only for a run all of whose processes are gone, since nobody else may write to these files. */
export async function takeWaitingSpools(folder: string, id: string, to: SpoolTaker, now: () => number): Promise<number> {
  const names = await inTurn(folder, () => readdir(folder)).catch(() => [])
  let taken = 0
  for (const name of names.filter((one) => one.startsWith(`${id}.rank`) && one.endsWith('.jsonl')).sort()) {
    const path = join(folder, name)
    const text = await inTurn(path, () => readFile(path, 'utf8')).catch(() => null)
    // The next process with the SDK has taken it, or somebody else owns it.
    if (text === null) continue
    await take(text.split('\n'), id, to, now)
    await inTurn(path, () => rm(path, { force: true })).catch(() => undefined)
    taken++
  }
  return taken
}

function inTurn<T>(path: string, call: () => Promise<T>): Promise<T> {
  return homeLane.patiently(() => homeLane.run(path, call))
}

async function take(lines: readonly string[], id: string, to: SpoolTaker, now: () => number): Promise<void> {
  const steps: string[] = []
  let end: RunEnd | null = null
  // The first line says whose they are; a last line without its end was torn by the death of the process.
  for (const line of lines.slice(1, -1)) {
    const value = parseJson(line)
    if (typeof value !== 'object' || value === null) continue
    if ('report' in value) await to.keepReport(id, value.report as Record<string, unknown>)
    else if ('end' in value) end = endOf(value.end, now) ?? end
    else steps.push(line)
  }
  for (let from = 0; from < steps.length; from += BATCH_LINES)
    await to.postSteps(id, Buffer.from(steps.slice(from, from + BATCH_LINES).join('\n')))
  if (end) await to.endRun(id, end)
}

function endOf(given: unknown, now: () => number): RunEnd | null {
  const { data } = runEnd.safeParse(given)
  return data ? { outcome: data.outcome, message: data.message ?? null, endedAt: data.ended_at ?? now(), rank: data.rank ?? null } : null
}
