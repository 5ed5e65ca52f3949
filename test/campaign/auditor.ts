/** Compares what was promised with what is there: nothing lost, nothing doubled, nothing falsely resolved. */
import type { Ailing, Ledger, Life, Played, Receipt } from './ledger.ts'

export type FaultKind =
  | 'step lost'
  | 'step doubled'
  | 'step invented'
  | 'step refused'
  | 'run wrong'
  | 'alert lost'
  | 'alert doubled'
  | 'alert repeated'
  | 'falsely resolved'
  | 'never resolved'
  | 'false alarm'
  | 'agent ended'

export interface AuditFault {
  readonly kind: FaultKind
  readonly what: string
  /** Two faults at once: the disk was full when the agent was killed, which is not promised to be survived. */
  readonly isExcused: boolean
}

export interface Audit {
  readonly faults: readonly AuditFault[]
  readonly figures: Readonly<Record<string, number>>
}

const CHANNELS = ['webhook', 'mail'] as const
const OPEN = ['firing', 'repeat', 'late']
const OVER = ['resolved', 'late']
/** How long findings without an end of their own last: a dead run, a memory error. */
const LASTING_MS = 60 * 60_000
/** How soon after a start something is announced again that should not be. */
const JUST_BEFORE_MS = 60_000
const DEAD_OUTCOMES = new Set(['failed', 'raised', 'killed'])

interface Expected {
  /** What mails call the run. */
  readonly name: string | null
  readonly fingerprint: string
  readonly detector: string
  readonly run: string | null
  readonly gpu: string | null
  readonly since: number
}

export function audit(ledger: Ledger): Audit {
  const faults: AuditFault[] = []
  const blame = (kind: FaultKind, what: string, isExcused = false) => void faults.push({ kind, what, isExcused })
  auditSteps(ledger, blame)
  auditRuns(ledger, blame)
  const expected = [...ledger.played.flatMap((played) => expectedOfRun(played, ledger)), ...ledger.ailing.map(expectedOfGpu)]
  auditDelivery(ledger, expected, blame)
  auditEpisodes(ledger, blame)
  auditRepetitions(ledger, blame)
  auditEndings(ledger, blame)
  auditAlarms(ledger, expected, blame)
  for (const { end, endedAt } of ledger.lives) if (end === 'crashed') blame('agent ended', `nobody asked it to, at ${endedAt}`)
  return { faults, figures: figuresOf(ledger, faults, expected.length) }
}

type Blame = (kind: FaultKind, what: string, isExcused?: boolean) => void

function auditSteps({ acknowledged, stored, played }: Ledger, blame: Blame): void {
  const logged = new Map<string, number>()
  for (const { play, ranks } of played)
    for (const { run, rank, logged: count, rejected, dropped, endedAt } of ranks) {
      if (run === null) continue
      const key = `${run} ${rank}`
      logged.set(key, count)
      if (rejected > 0 || dropped > 0) blame('step refused', `${play.name} ${key}: ${rejected} rejected, ${dropped} dropped`)
      if (play.ending === 'killed' || endedAt === null) continue
      const there = stored.get(key)
      const lost = Array.from({ length: count }, (_, step) => step).filter((step) => !there?.has(step))
      if (lost.length > 0) blame('step lost', `${play.name} ${key}: ${lost.length} of ${count} logged, first ${lost[0]}`)
    }
  for (const [key, steps] of acknowledged) {
    const there = stored.get(key)
    const lost = [...steps.keys()].filter((step) => !there?.has(step))
    if (lost.length > 0) blame('step lost', `${key}: ${lost.length} of ${steps.size} acknowledged, first ${lost[0]}`)
  }
  for (const [key, steps] of stored) {
    const doubled = [...steps].filter(([, count]) => count > 1)
    if (doubled.length > 0) blame('step doubled', `${key}: ${doubled.length} steps, first ${doubled[0]?.[0]}`)
    const most = logged.get(key)
    const invented = most === undefined ? steps.size : [...steps.keys()].filter((step) => step >= most).length
    if (invented > 0) blame('step invented', `${key}: ${invented} steps that nobody logged`)
  }
}

function auditRuns({ played, runs, reported, stored, leftSpools }: Ledger, blame: Blame): void {
  for (const { play, ranks } of played) {
    const id = ranks[0]?.run ?? null
    if (id === null) continue
    const known = runs.get(id)
    const steps = ranks.reduce((sum, { rank }) => sum + (stored.get(`${id} ${rank}`)?.size ?? 0), 0)
    if (!known) {
      if (steps > 0 || play.ending !== 'killed') blame('run wrong', `${play.name} ${id}: the agent does not know it`)
      continue
    }
    if (known.steps !== steps) blame('run wrong', `${play.name} ${id}: ${known.steps} steps by the agent, ${steps} in the log`)
    const isNanAtEnd = play.nan !== null && play.nan.from + play.nan.steps >= play.steps
    const dead = play.ending === 'killed' ? 'killed' : 'failed'
    const outcome = DEAD_OUTCOMES.has(play.ending) ? dead : isNanAtEnd ? 'nan' : 'success'
    // A run that was announced only after its process was killed cannot be told from one on another host: it stays open for a day.
    const isRight = known.outcome === outcome || (isNanAtEnd && known.outcome === 'nan') || (outcome === 'killed' && known.outcome === null)
    if (!isRight) blame('run wrong', `${play.name} ${id}: ended as ${known.outcome}, not as ${outcome}`)
    const inReport = reported.get(id)
    if (inReport !== undefined && inReport !== steps)
      blame('run wrong', `${play.name} ${id}: ${inReport} steps in the report, ${steps} in the log`)
  }
  for (const file of leftSpools) blame('step lost', `the spool ${file} was not taken`)
}

function expectedOfRun({ play, ranks }: Played, { runs }: Ledger): Expected[] {
  const first = ranks[0]
  const run = first?.run ?? null
  if (!first || run === null) return []
  const of = (detector: string, since: number): Expected => ({
    ...{ fingerprint: `${detector}|run=${run}`, detector, run, gpu: null, since },
    name: play.name,
  })
  const found: Expected[] = []
  if (first.nanAt !== null && play.ending !== 'killed') found.push(of('loss_nan', first.nanAt))
  const isNanAtEnd = play.nan !== null && play.nan.from + play.nan.steps >= play.steps
  const isKnownDead = play.ending !== 'killed' || runs.get(run)?.outcome === 'killed'
  if ((DEAD_OUTCOMES.has(play.ending) || isNanAtEnd) && isKnownDead) found.push(of('run_died', 0))
  return found
}

function expectedOfGpu({ ailment, fingerprint, beganAt }: Ailing): Expected {
  return { fingerprint, detector: ailment.kind, name: null, run: null, gpu: String(ailment.gpu), since: beganAt }
}

/** Whether this message says of this alert that it is so. */
function tells(receipt: Receipt, { fingerprint, detector, name, run, gpu, since }: Expected, statuses: readonly string[]): boolean {
  if (!receipt.isAcknowledged || receipt.at < since) return false
  if (receipt.channel === 'webhook')
    return receipt.alerts.some((alert) => alert.fingerprint === fingerprint && statuses.includes(alert.status))
  if (!receipt.detectors.includes(detector) || !receipt.statuses.some((status) => statuses.includes(status))) return false
  if (name === null) return gpu !== null && receipt.gpus.includes(gpu)
  // play-7-3 is not play-7-32. Right after a start the name may not be known yet.
  return new RegExp(`(?<![\\w-])(${name}|${run})(?![\\w-])`).test(receipt.text)
}

/** Every scripted problem, and everything that the agent showed as firing, reached every channel. */
function auditDelivery(ledger: Ledger, expected: readonly Expected[], blame: Blame): void {
  for (const { ailment, firingAt } of ledger.ailing)
    if (firingAt === null) blame('alert lost', `${ailment.kind} of GPU ${ailment.gpu} was never noticed`)
  for (const one of expected)
    for (const channel of CHANNELS)
      if (!ledger.receipts.some((receipt) => receipt.channel === channel && tells(receipt, one, OPEN)))
        blame('alert lost', `${one.fingerprint} never reached the ${channel}`, isKilledSoonOnFullDisk(ledger, one.since))
  const scripted = new Set(expected.map(({ fingerprint }) => fingerprint))
  for (const [fingerprint, at] of ledger.shown) {
    if (scripted.has(fingerprint)) continue
    const isThere = ledger.receipts.some(
      ({ channel, isAcknowledged, alerts }) =>
        channel === 'webhook' && isAcknowledged && alerts.some((alert) => alert.fingerprint === fingerprint && OPEN.includes(alert.status)),
    )
    if (!isThere) blame('alert lost', `${fingerprint} was shown and never reached the webhook`, isKilledOnFullDisk(ledger, at, at + 10_000))
  }
}

/** The same problem is announced once per severity, however often the agent is killed. */
function auditEpisodes(ledger: Ledger, blame: Blame): void {
  const messages = new Map<string, Map<string, number>>()
  for (const { channel, isAcknowledged, alerts, id, at } of ledger.receipts)
    for (const { fingerprint, status, severity, firedAt } of alerts) {
      if (!isAcknowledged || status !== 'firing') continue
      const key = `${channel} ${fingerprint} ${severity} ${isSingle(ledger, fingerprint) ? '' : firedAt}`
      const ids = messages.get(key) ?? new Map<string, number>()
      messages.set(key, ids.set(baseOf(id), at))
    }
  for (const [key, ids] of messages) {
    const [, ...again] = [...ids.values()].sort((a, b) => a - b)
    const isExcused = again.every((at) => isKilledOnFullDisk(ledger, at - JUST_BEFORE_MS, at))
    if (again.length > 0) blame('alert doubled', `${key}: ${ids.size} messages`, isExcused)
  }
}

/** Problems that by the script happen once: all others may come back. */
function isSingle({ played }: Ledger, fingerprint: string): boolean {
  // A death may be presumed first, and known better later.
  if (!fingerprint.startsWith('loss_nan|')) return false
  const id = fingerprint.replace(/^.*\|run=/, '')
  return played.some(({ play, ranks }) => play.ending !== 'killed' && ranks.length === 1 && ranks[0]?.run === id)
}

/** A message that was acknowledged comes again only after a kill, and then one per channel at most. */
function auditRepetitions(ledger: Ledger, blame: Blame): void {
  for (const channel of CHANNELS) {
    const seenIn = new Map<string, number>()
    const again = new Map<number, Set<string>>()
    for (const { id, at, isHeard } of ledger.receipts.filter((receipt) => receipt.channel === channel)) {
      const life = lifeAt(ledger.lives, at)
      const before = seenIn.get(baseOf(id))
      if (before !== undefined && before === life) blame('alert repeated', `${channel} ${id}: twice from one process`)
      // Tries that failed are of the same message.
      else if (before !== undefined) again.set(life, (again.get(life) ?? new Set()).add(baseOf(id)))
      if (isHeard) seenIn.set(baseOf(id), life)
    }
    for (const [life, ids] of again) {
      const killedAt = ledger.lives[life - 1]?.endedAt ?? 0
      const isFull = isKilledOnFullDisk(ledger, killedAt, killedAt)
      const isAfterKill = ledger.lives.slice(0, life).some(({ end }) => end === 'killed')
      if (ids.size > 1 || !isAfterKill) blame('alert repeated', `${channel}: ${ids.size} messages again after start ${life}`, isFull)
    }
  }
}

function auditEndings(ledger: Ledger, blame: Blame): void {
  const over = (one: Expected, from: number, to: number) =>
    ledger.receipts.filter(
      // A mail may tell of several alerts at once; the webhook says which of them is over.
      (receipt) => receipt.channel === 'webhook' && receipt.at >= from && receipt.at < to && tells(receipt, one, ['resolved']),
    )
  for (const one of ledger.ailing) {
    const { ailment, firingAt, clearedAt } = one
    if (firingAt === null) continue
    const expected = expectedOfGpu(one)
    const until = clearedAt ?? firingAt + LASTING_MS
    for (const { id } of over(expected, firingAt, until)) blame('falsely resolved', `${id}: ${ailment.kind} of GPU ${ailment.gpu}`)
    if (clearedAt !== null) mustEnd(expected, clearedAt)
  }
  for (const played of ledger.played)
    for (const one of expectedOfRun(played, ledger)) {
      const [rank] = played.ranks
      const { play } = played
      if (one.detector === 'run_died') {
        // Nobody starts it again, so its last word must not be that all is well.
        const told = ledger.receipts.flatMap(({ channel, alerts, isAcknowledged, at }) =>
          channel === 'webhook' && isAcknowledged && at < (rank?.endedAt ?? 0) + LASTING_MS
            ? alerts.filter(({ fingerprint }) => fingerprint === one.fingerprint)
            : [],
        )
        if (play.ending !== 'killed' && told.at(-1)?.status === 'resolved') blame('falsely resolved', one.fingerprint)
        continue
      }
      const until = rank?.finiteAt ?? rank?.endedAt ?? Number.POSITIVE_INFINITY
      for (const { id } of over(one, one.since, until)) blame('falsely resolved', `${id}: ${one.fingerprint}`)
      mustEnd(one, until)
    }

  function mustEnd(one: Expected, from: number): void {
    const isUnconfirmed = ledger.firing.get(one.fingerprint) === true
    for (const channel of CHANNELS) {
      const isTold = ledger.receipts.some(
        (receipt) => receipt.channel === channel && tells(receipt, { ...one, since: Math.min(from, one.since) }, OVER),
      )
      if (!isTold && !isUnconfirmed) blame('never resolved', `${one.fingerprint} on the ${channel}`, isKilledSoonOnFullDisk(ledger, from))
    }
  }
}

/** Nobody is alerted of a run that went well, or of a GPU that is fine. */
function auditAlarms(ledger: Ledger, expected: readonly Expected[], blame: Blame): void {
  const isExpected = new Set(expected.map(({ fingerprint }) => fingerprint))
  const told = new Set(ledger.receipts.flatMap(({ alerts }) => alerts.map(({ fingerprint }) => fingerprint)))
  for (const fingerprint of told)
    if (/^(thermal|ecc|loss_nan|gpu_lost)\|/.test(fingerprint) && !isExpected.has(fingerprint)) blame('false alarm', fingerprint)
  // A run whose end is late is taken for dead until the end arrives; then the alert must be over.
  const killed = new Set(ledger.played.flatMap(({ play, ranks }) => (play.ending === 'killed' ? (ranks[0]?.run ?? []) : [])))
  for (const fingerprint of ledger.firing.keys())
    if (fingerprint.startsWith('run_died|') && !isExpected.has(fingerprint) && !killed.has(fingerprint.replace(/^.*\|run=/, '')))
      blame('false alarm', fingerprint)
}

/** Whether the agent was killed within this time, at a moment when the disk was full. */
function isKilledOnFullDisk({ lives, fullDisks }: Ledger, from: number, to: number): boolean {
  return lives.some(
    ({ end, endedAt }) =>
      end === 'killed' && endedAt >= from && endedAt <= to && fullDisks.some((full) => full.from <= endedAt && full.to >= endedAt),
  )
}

/** The same, for this life of the agent and the next one. */
function isKilledSoonOnFullDisk(ledger: Ledger, at: number): boolean {
  return isKilledOnFullDisk(ledger, at, ledger.lives[lifeAt(ledger.lives, at) + 1]?.endedAt ?? Number.POSITIVE_INFINITY)
}

function lifeAt(lives: readonly Life[], at: number): number {
  return lives.findLastIndex(({ startedAt }) => startedAt <= at)
}

/** A message whose content changed while it waited has a revision. */
function baseOf(id: string): string {
  return id.replace(/-r\d+$/, '')
}

function figuresOf(ledger: Ledger, faults: readonly AuditFault[], expected: number): Record<string, number> {
  const sum = (counts: Ledger['stored']) => [...counts.values()].reduce((all, steps) => all + steps.size, 0)
  const counted = (kinds: readonly FaultKind[]) => faults.filter(({ kind, isExcused }) => kinds.includes(kind) && !isExcused).length
  return {
    'agent kills': ledger.lives.filter(({ end }) => end === 'killed').length,
    'full disks': ledger.fullDisks.length,
    'clock jumps': ledger.clockJumps.length,
    runs: ledger.played.length,
    'steps logged': ledger.played.reduce((all, { ranks }) => all + ranks.reduce((some, { logged }) => some + logged, 0), 0),
    'steps acknowledged': sum(ledger.acknowledged),
    'steps stored': sum(ledger.stored),
    'torn lines': ledger.tornLines,
    'alerts scripted': expected,
    'alerts shown': ledger.shown.size,
    'messages acknowledged': ledger.receipts.filter(({ isAcknowledged }) => isAcknowledged).length,
    lost: counted(['step lost', 'step refused', 'alert lost', 'run wrong']),
    doubled: counted(['step doubled', 'step invented', 'alert doubled', 'alert repeated', 'false alarm']),
    'falsely resolved': counted(['falsely resolved']),
    'never resolved': counted(['never resolved']),
    excused: faults.filter(({ isExcused }) => isExcused).length,
  }
}
