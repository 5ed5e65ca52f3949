/** The alerts of an agent: its answer, kept up to date by the stream. */
import type { AlertsEvent, AlertView } from '../alert-contract.ts'
import type { Finding } from '../model.ts'
import { compareFindings, type KnownFindings } from './findings.ts'

export interface AlertsAnswer {
  readonly at: number
  readonly alerts: readonly AlertView[]
}

const STATE_ORDER: Readonly<Record<AlertView['state'], number>> = { firing: 0, pending: 1, resolved: 2 }

/** Firing, then pending, then resolved; each in the order of findings. */
export function compareAlerts(a: AlertView, b: AlertView): number {
  return STATE_ORDER[a.state] - STATE_ORDER[b.state] || compareFindings(a.finding, b.finding)
}

/** "Open" wherever alerts are counted. */
export function isOpenAlert({ state }: AlertView): boolean {
  return state !== 'resolved'
}

/** Those that fire and that this channel has not named in a message, such as where there were too many for one. */
export function untoldBy(channel: string, alerts: readonly AlertView[]): readonly AlertView[] {
  return alerts.filter(({ state, told, mutedBy }) => state === 'firing' && mutedBy === null && !told.includes(channel))
}

/** `22 alerts open` */
export function openAlertsInWords(alerts: readonly AlertView[]): string {
  const open = alerts.filter(isOpenAlert).length
  return `${open} ${open === 1 ? 'alert' : 'alerts'} open`
}

interface Told {
  readonly at: number
  /** null: not kept anymore. */
  readonly alert: AlertView | null
}

export class KnownAlerts {
  #told = new Map<string, Told>()
  /** null: not asked yet, or alerts are off. */
  #answeredAt: number | null = null
  #list: { readonly alerts: readonly AlertView[]; readonly findings: readonly Finding[] } | null = null

  /** An event from before the answer is already in it. */
  accept({ at, alerts, gone }: AlertsEvent): void {
    if (this.#answeredAt !== null && at < this.#answeredAt) return
    this.#list = null
    for (const alert of alerts) this.#told.set(alert.fingerprint, { at, alert })
    for (const fingerprint of gone) this.#told.set(fingerprint, { at, alert: null })
  }

  clear(): void {
    this.#told.clear()
    this.#list = null
  }

  /** A slow answer does not undo newer events. null: alerts are off. */
  answer(answer: AlertsAnswer | null): void {
    const at = answer?.at ?? Number.POSITIVE_INFINITY
    const told = new Map((answer?.alerts ?? []).map((alert): [string, Told] => [alert.fingerprint, { at, alert }]))
    for (const [fingerprint, one] of this.#told) if (one.at >= at) told.set(fingerprint, one)
    this.#told = told
    this.#answeredAt = answer?.at ?? null
    this.#list = null
  }

  /** null: alerts are off. Message and times come from the newest finding, the severity from the alert's rule. The same array until something changes. */
  list(findings: KnownFindings): readonly AlertView[] | null {
    if (this.#answeredAt === null) return null
    if (this.#list?.findings !== findings.list) {
      const alerts = [...this.#told.values()].flatMap(({ alert }) => (alert ? [withFinding(alert, findings)] : []))
      this.#list = { alerts: alerts.sort(compareAlerts), findings: findings.list }
    }
    return this.#list.alerts
  }
}

function withFinding(alert: AlertView, findings: KnownFindings): AlertView {
  const finding = isOpenAlert(alert) ? findings.get(alert.fingerprint) : undefined
  return finding ? { ...alert, finding: { ...finding, severity: alert.finding.severity } } : alert
}
