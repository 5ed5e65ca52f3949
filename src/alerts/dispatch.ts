/** Decides who has to be told of which trouble, and hands it to the queue of each channel. Sends nothing itself. */
import type { Alert, AlertStatus } from '../core/alert-contract.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import type { AgentState } from '../core/kinds.ts'
import type { Finding, GpuInfo, ProcessView, Run } from '../core/model.ts'
import { RunNames } from '../core/run-names.ts'
import { type AlertRecord, explanationOf, SEVERITY_RANK } from './alert-record.ts'
import type { ChannelQueue } from './channel-queue.ts'
import type { MatchSubject } from './matcher.ts'
import type { Notice } from './notice.ts'
import { channelsFor, type Route } from './routes.ts'
import type { Silence, Silences } from './silences.ts'
import { isInWindow, type TimeWindow } from './time-window.ts'

/** Problems of these GPUs (all when not given) are expected in this window. */
export type MaintenanceWindow = TimeWindow & { readonly gpu?: readonly string[] | undefined; readonly comment?: string | undefined }

export interface DispatchOptions {
  readonly state: AgentState
  readonly queues: ReadonlyMap<string, ChannelQueue>
  readonly silences: Silences
  readonly routes: readonly Route[]
  readonly maintenance: readonly MaintenanceWindow[]
  readonly owners: Readonly<Record<string, string>>
  readonly repeatMs: number
  readonly deliverSimulated: boolean
  readonly now: () => number
  readonly nowMs: () => number
  /** Why nobody would get an alert by this channel now. */
  readonly idle: (channel: string) => string | null
  /** Of a run that was not heard of since the start; null: unknown. */
  readonly runName: (run: string) => string | null
}

/** Why a firing alert is not reported. */
export type Muted = { readonly by: 'silence'; readonly silence: Silence } | { readonly by: 'maintenance' | 'acknowledged' | 'simulated' }

const MOST_MENTIONED = 10_000
const MOST_RUNS = 500

export class Dispatch {
  readonly #options: DispatchOptions
  /** The owner of each run; the run heard from longest ago is first. */
  readonly #runUsers = new BoundedMap<string, string>(MOST_RUNS, { isRenewed: true })
  readonly #names = new RunNames()
  /** Fingerprints already counted as "N more", so that repeats do not count again. */
  readonly #mentioned = new Set<string>()

  constructor(options: DispatchOptions) {
    this.#options = options
  }

  /** Brings every channel's queue in line with one problem. May be called at any time, any number of times. */
  reconcile(record: AlertRecord): void {
    if (record.phase === 'pending') return
    if (record.phase === 'resolved') this.#clear(record)
    else this.#announce(record)
  }

  /** The engine has forgotten this problem: forget it too. */
  forget(record: AlertRecord): void {
    for (const queue of this.#options.queues.values()) queue.forget(record.fingerprint)
  }

  /** Findings of a run go to whoever started it. */
  noteRun(run: Run): void {
    const { id, user } = run
    this.#names.note(run)
    if (user === null) this.#runUsers.delete(id)
    else this.#runUsers.set(id, user)
  }

  /** A problem without room: one of the "N more" of every channel that would have reported it. */
  mention(finding: Finding, simulated: boolean): void {
    const { routes, queues, idle } = this.#options
    if (this.#mentioned.has(finding.fingerprint)) return
    const subject = this.#subject(finding)
    const channels = channelsFor(routes, queues.keys(), subject)
    if (channels.size === 0 || this.#unwanted(subject, simulated)) return
    if (this.#mentioned.size >= MOST_MENTIONED) this.#mentioned.clear()
    this.#mentioned.add(finding.fingerprint)
    for (const name of channels) if (idle(name) === null) queues.get(name)?.mention()
  }

  labelOf(finding: Finding): string | null {
    // After a restart the GPUs are not known at once, but a detector knew the index.
    return this.#info(finding)?.label ?? finding.subject.gpuIndex?.toString() ?? null
  }

  muted(record: AlertRecord): Muted | null {
    const unwanted = this.#unwanted(this.#subject(record.finding), record.simulated)
    if (unwanted) return unwanted
    const ack = record.acknowledged
    const isTaken = ack !== null && ack.until > this.#options.now()
    return isTaken && SEVERITY_RANK[record.finding.severity] <= SEVERITY_RANK[ack.severity] ? { by: 'acknowledged' } : null
  }

  #unwanted(subject: MatchSubject, simulated: boolean): Muted | null {
    const { silences, maintenance, deliverSimulated, now } = this.#options
    if (simulated && !deliverSimulated) return { by: 'simulated' }
    const silence = silences.covering(subject)
    if (silence) return { by: 'silence', silence }
    const at = now()
    return maintenance.some((window) => isInWindow(window, at) && concerns(window, subject)) ? { by: 'maintenance' } : null
  }

  #announce(record: AlertRecord): void {
    const { queues, routes, repeatMs, nowMs, idle } = this.#options
    // From before a restart: its detector has to say whether it is still there.
    if (queues.size === 0 || record.unconfirmed) return
    const channels = channelsFor(routes, queues.keys(), this.#subject(record.finding))
    if (channels.size === 0) return
    const explanation = explanationOf(record.finding)
    let muted: Muted | null | undefined
    let notice: Notice | null = null
    for (const name of channels) {
      const queue = queues.get(name)
      if (!queue || idle(name) !== null) continue
      const told = queue.told(record.fingerprint)
      const waiting = queue.waiting.get(record.fingerprint)
      const isWorse = SEVERITY_RANK[record.finding.severity] > SEVERITY_RANK[waiting?.severity ?? told?.severity ?? 'critical']
      // A cause that becomes known belongs into the message that waits, and is worth one more message.
      const isNamed = explanation !== null && waiting !== undefined && explanationOf(waiting.alert.finding) !== explanation
      const isExplained = explanation !== null && told?.sent === true && told.isExplained === false
      const isWanted = queue.announces(record.fingerprint)
        ? waiting !== undefined && (isWorse || isNamed)
        : told === undefined || isWorse || isExplained || nowMs() - told.ms >= repeatMs
      if (!isWanted && !waiting) continue
      if (muted === undefined) muted = this.muted(record)
      if (muted) {
        // Silenced while it waited: it comes back if the problem outlasts the silence.
        queue.withdraw(record.fingerprint)
        continue
      }
      if (!isWanted) continue
      const status: AlertStatus = told?.sent && !isWorse ? 'repeat' : 'firing'
      notice ??= this.#notice(record, 'firing')
      queue.announce({ ...notice, alert: { ...notice.alert, status }, thread: told?.thread || null })
    }
  }

  /** Silences and the like hold back what is new, not the end of what was reported: a page that was opened has to be closed. */
  #clear(record: AlertRecord): void {
    let notice: Notice | null = null
    for (const queue of this.#options.queues.values()) {
      const told = queue.told(record.fingerprint)
      if (!told && !queue.announces(record.fingerprint)) continue
      notice ??= this.#notice(record, 'resolved')
      queue.clear({ ...notice, thread: told?.thread || null })
    }
  }

  #notice(record: AlertRecord, status: AlertStatus): Notice {
    const { owners, now, nowMs } = this.#options
    const alert = this.#alert(record, status)
    const { user } = alert.finding.subject
    return {
      alert,
      severity: record.finding.severity,
      simulated: record.simulated,
      owner: user !== null && Object.hasOwn(owners, user) ? (owners[user] ?? null) : null,
      at: now(),
      queuedMs: nowMs(),
      urgent: record.finding.severity === 'critical',
      held: false,
      thread: null,
    }
  }

  #alert(record: AlertRecord, status: AlertStatus): Alert {
    const info = this.#info(record.finding)
    const said = status === 'resolved' ? (record.cleared ?? { ...record.finding, state: 'resolved' as const }) : record.finding
    const finding = { ...said, subject: { ...said.subject, user: this.#userOf(said) } }
    return {
      fingerprint: record.fingerprint,
      status,
      finding,
      firedAt: record.firedAt ?? record.finding.at,
      resolvedAt: status === 'resolved' ? record.resolvedAt : null,
      gpuLabel: this.labelOf(finding),
      gpuName: info?.name ?? null,
      runName: said.subject.run === null ? null : this.#nameOf(said.subject.run),
      process: this.#process(record.finding),
      series: null,
    }
  }

  #nameOf(run: string): string {
    const name = this.#names.of(run)
    return name === run ? (this.#options.runName(run) ?? run) : name
  }

  #info(finding: Finding): GpuInfo | undefined {
    const { gpu } = finding.subject
    return gpu === null ? undefined : this.#options.state.gpus().find((view) => view.info.id === gpu)?.info
  }

  /** Without the command line: people put passwords there, and more people than the owner read a message. */
  #process(finding: Finding): ProcessView | null {
    const { pid, gpu } = finding.subject
    if (pid === null) return null
    const found = this.#options.state.processes().find((process) => process.pid === pid && (gpu === null || process.gpu === gpu))
    return found ? { ...found, info: found.info && { ...found.info, command: null } } : null
  }

  #subject(finding: Finding): MatchSubject {
    return { finding, gpuLabel: this.labelOf(finding), user: this.#userOf(finding) }
  }

  #userOf(finding: Finding): string | null {
    const { user, run } = finding.subject
    return user ?? this.#process(finding)?.info?.user ?? (run === null ? null : (this.#runUsers.get(run) ?? null))
  }
}

function concerns(window: MaintenanceWindow, { finding, gpuLabel }: MatchSubject): boolean {
  if (window.gpu === undefined || window.gpu.length === 0) return true
  const { gpu, gpuIndex } = finding.subject
  return window.gpu.some((name) => name === gpu || name === gpuLabel || name === String(gpuIndex))
}
