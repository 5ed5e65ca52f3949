/** A run that died: one finding per death, whoever saw it. Other findings around it are its evidence. */
import { BoundedMap } from '../core/bounded-map.ts'
import { type Detector, type DetectorKind, MOST_RUNS } from '../core/detector-contract.ts'
import type { Finding, GpuEvent, Reading, Run, TrainingStep } from '../core/model.ts'
import { byType } from './by-type.ts'
import { FindingBook, NO_FINDINGS } from './finding.ts'
import { type Clue, deathDraft, type LivedRun } from './run-death.ts'
import { subjectOfRun } from './run-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

const CLUE_CAP = 64
/** How long before or after a death a clue may be its cause. */
const BEFORE_MS = 120_000
const AFTER_MS = 30_000
const SHUTDOWN = 'shutdown'
/** 128 + SIGKILL: what a shell ends with when its command was killed. */
const KILLED_IN_SHELL = 'exit code 137'
const SHELL_MS = 10_000
/** A longer step from sample to sample is no time that passed here. */
const JUMP_MS = 300_000
/** Detectors whose findings about a run's GPUs explain a death. */
const HARDWARE = new Set(['xid', 'gpu_lost', 'ecc', 'driver_stuck'])

export const runDied: DetectorKind<Thresholds<'runDied'>> = {
  name: 'run_died',
  about: 'A training run died: out of memory, NaN, a signal, an error, or it vanished. A warning if somebody stopped it on purpose.',
  severities: ['warning', 'critical'],
  inputs: ['run', 'step', 'event', 'finding', 'gpu', 'host'],
  charts: [
    { of: 'steps', field: 'loss', title: 'Loss', unit: 'count' },
    { of: 'gpu', field: 'memoryUsedBytes', title: 'Memory in use', unit: 'bytes' },
  ],
  outlivesGpu: true,
  defaults: THRESHOLDS.runDied,
  create: (options, maxRuns) => createRunDied(options.activeMinutes * 60_000, maxRuns),
}

function createRunDied(activeMs: number, maxRuns = MOST_RUNS): Detector {
  const book = new FindingBook('run_died')
  const runs = new BoundedMap<string, LivedRun>(maxRuns)
  const clues = new BoundedMap<string, Clue>(CLUE_CAP)
  let nowAt = 0
  let hostName: string | null = null
  /** How far the clock has jumped, or how long nobody watched: neither makes a death old. */
  let skewMs = 0

  function lived(id: string): LivedRun {
    const known = runs.get(id) ?? runs.keep(id, { run: null, lastStep: null, lastStepAt: null, forecast: null, nan: null })
    runs.touch(id)
    return known
  }

  function takeStep({ run, step, at }: TrainingStep): readonly Finding[] {
    const known = runs.get(run) ?? lived(run)
    if (known.lastStep === null || step > known.lastStep) known.lastStep = step
    known.lastStepAt = at
    return NO_FINDINGS
  }

  function takeRun(run: Run): readonly Finding[] {
    const known = lived(run.id)
    const before = known.run
    known.run = run
    const key = book.key(subjectOfRun(run.id))
    if (run.endedAt === null) return again(run, book.resolve(key, nowAt, `Run ${run.id} is still running.`))
    if (run.outcome === null || run.outcome === 'success')
      return book.resolve(key, run.endedAt, `Run ${run.id} ended successfully after all.`)
    // Said again after its death was closed.
    if (before?.endedAt === run.endedAt && before.outcome === run.outcome && !book.has(key)) return NO_FINDINGS
    // An import of old runs is not news.
    return nowAt - skewMs - run.endedAt > activeMs ? NO_FINDINGS : tell(known, run.endedAt)
  }

  /** The same program was started again: its last death is closed. */
  function again({ id, name, startedAt }: Run, goesOn: readonly Finding[]): readonly Finding[] {
    const before = book.keys().flatMap((key) => {
      const dead = runs.get(book.get(key)?.subject.run ?? '')?.run
      const isSame = dead?.endedAt != null && dead.id !== id && dead.name === name && startedAt >= dead.endedAt
      return isSame ? [...book.resolve(key, startedAt, `Run ${dead.id} was started again.`)] : []
    })
    return before.length === 0 ? goesOn : [...goesOn, ...before]
  }

  function tell(known: LivedRun, at: number): readonly Finding[] {
    const { run } = known
    if (run === null || run.endedAt === null) return NO_FINDINGS
    const { endedAt } = run
    const near = [...clues.values()].filter(
      (clue) => clue.at >= endedAt - BEFORE_MS && clue.at <= endedAt + AFTER_MS && concerns(clue, run),
    )
    const subject = subjectOfRun(run.id)
    const key = book.key(subject)
    const draft = deathDraft(known, run, endedAt, near)
    const before = book.get(key)
    if (before?.message === draft.message) return NO_FINDINGS
    // Another source knows more about the same death: news at once.
    if (before !== undefined) book.resolve(key, at)
    const gpuIndex = near.find((clue) => clue.gpuIndex !== null)?.gpuIndex ?? null
    return book.raise({ ...subject, user: run.user, gpuIndex }, Math.max(at, endedAt), { ...draft, since: endedAt })
  }

  function takeFinding({
    detector,
    state,
    at,
    subject,
    message,
    predictedAt,
    fingerprint,
    severity,
    evidence,
  }: Finding): readonly Finding[] {
    if (state !== 'active') return NO_FINDINGS
    if (subject.run !== null) {
      const known = runs.get(subject.run)
      if (!known) return NO_FINDINGS
      if (predictedAt !== null && severity !== 'info') known.forecast ??= { saidAt: at, predictedAt }
      const { step, earliest_step: earliest } = evidence
      if (detector === 'loss_nan' && known.nan === null && typeof step === 'number') {
        known.nan = { shown: step, earliest: typeof earliest === 'number' ? earliest : step }
        // Its steps came after its death.
        if (book.has(book.key(subjectOfRun(subject.run)))) return tell(known, known.run?.endedAt ?? at)
      }
    }
    if (!HARDWARE.has(detector)) return NO_FINDINGS
    return note(fingerprint, { at, gpu: subject.gpu, gpuIndex: subject.gpuIndex, pid: null, text: message.replace(/\.$/, '') })
  }

  function takeEvent({ event, at, code, message }: GpuEvent): readonly Finding[] {
    if (event === 'shutdown') return noteShutdown(code, message)
    if (event !== 'oom_kill') return NO_FINDINGS
    return note(`oom_kill ${code} ${at}`, { at, gpu: null, gpuIndex: null, pid: code, host: hostName, text: message })
  }

  /** `dueAt` null: it was canceled. */
  function noteShutdown(dueAt: Reading, text: string): readonly Finding[] {
    if (dueAt !== null) return note(SHUTDOWN, { at: dueAt, gpu: null, gpuIndex: null, pid: null, host: hostName, text })
    clues.delete(SHUTDOWN)
    return NO_FINDINGS
  }

  /** A clue just after a death may still explain it. */
  function note(key: string, clue: Clue): readonly Finding[] {
    clues.set(key, clue)
    return book.keys().flatMap((open) => {
      const known = runs.get(book.get(open)?.subject.run ?? '')
      const isNear = known?.run?.endedAt != null && Math.abs(clue.at - known.run.endedAt) <= BEFORE_MS
      return known && isNear ? [...tell(known, clue.at)] : []
    })
  }

  function fade(at: number): readonly Finding[] {
    if (nowAt > 0 && Math.abs(at - nowAt) > JUMP_MS) skewMs += at - nowAt
    nowAt = at
    if (book.size === 0) return NO_FINDINGS
    return book.resolveWhere((finding) => at - skewMs - finding.since > activeMs, at, 'Nobody started it again; this finding is closed.')
  }

  return {
    accept: byType({
      step: ({ step }) => takeStep(step),
      run: ({ run }) => takeRun(run),
      finding: ({ finding }) => takeFinding(finding),
      event: ({ event }) => takeEvent(event),
      gpu: ({ sample }) => fade(sample.at),
      host: ({ sample }) => {
        hostName = sample.hostname
        return fade(sample.at)
      },
    }),
    snapshot: () => ({ runs: runs.saved(), clues: clues.saved(), findings: book.snapshot(), nowAt, hostName, skewMs }),
    restore(state) {
      const saved = state as { runs: unknown; clues: unknown; findings: unknown; nowAt: number; hostName?: string | null; skewMs?: number }
      runs.load(saved.runs)
      clues.load(saved.clues)
      book.restore(saved.findings)
      nowAt = saved.nowAt
      hostName = saved.hostName ?? null
      skewMs = saved.skewMs ?? 0
    },
  }
}

function concerns({ at, gpu, gpuIndex, pid, host }: Clue, run: Run): boolean {
  if (host != null && run.host !== null && run.host !== host) return false
  if (pid !== null) return pid === run.pid || isKillOfChild(run, pid, at)
  if (host !== undefined) return run.outcome === 'killed'
  return (gpu !== null && run.gpus.includes(gpu)) || (gpuIndex !== null && run.gpus.includes(String(gpuIndex)))
}

/** A worker that the error names, as PyTorch's DataLoader does, or the command of a shell that ended with it. */
function isKillOfChild({ ending, endedAt }: Run, pid: number, at: number): boolean {
  const message = ending?.message ?? ''
  if (message === KILLED_IN_SHELL) return Math.abs(at - (endedAt ?? at)) <= SHELL_MS
  return message.match(/\d+/g)?.includes(String(pid)) ?? false
}
