import type { Finding, ProcessView, Run } from '../../../../src/core/model.ts'
import { severityTone, type Tone } from '../../words.ts'

export interface ProcessMark {
  readonly label: string
  readonly tone: Tone
  readonly words: string
}

const LABELS: Readonly<Record<string, string>> = {
  intruder: 'intruder',
  idle_holding: 'idle holder',
  zombie: 'zombie',
  leak: 'leak',
  oom: 'OOM ahead',
}

/** Prepared once for all processes: those that speak of a PID, or of a run whose PID is known. */
export function findingsByPid(findings: readonly Finding[], runs: ReadonlyMap<string, Run>): ReadonlyMap<number, readonly Finding[]> {
  const byPid = new Map<number, Finding[]>()
  for (const finding of findings) {
    if (!(finding.detector in LABELS)) continue
    const { run } = finding.subject
    const pid = finding.subject.pid ?? (run === null ? null : (runs.get(run)?.pid ?? null))
    if (pid !== null) byPid.set(pid, [...(byPid.get(pid) ?? []), finding])
  }
  return byPid
}

/** The same PID on two GPUs is one process, but what it does on one of them is not said of the other. */
export function marksOf(process: ProcessView, byPid: ReadonlyMap<number, readonly Finding[]>): readonly ProcessMark[] {
  const own = (byPid.get(process.pid) ?? []).filter(({ subject }) => subject.gpu === null || subject.gpu === process.gpu)
  const marks = own.map(({ detector, severity, message }) => ({
    label: LABELS[detector] ?? detector,
    tone: severityTone(severity),
    words: message,
  }))
  // The kernel says it at once, the detector waits whether it stays.
  if (process.info?.state === 'Z' && !marks.some(({ label }) => label === 'zombie'))
    return [...marks, { label: 'zombie', tone: 'warning', words: 'It is dead, but not yet collected by its parent.' }]
  return marks
}
