/** Dead man's switch: calls a URL every few minutes, so that somebody else notices when nothing is watching any more. */
import type { Log } from '../core/kinds.ts'
import type { AlertValues } from './settings.ts'

export interface HeartbeatOptions {
  /** Usually holds a secret, so it is never logged. */
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly everyMs: number
  readonly host: string
  readonly log: Log
  readonly timeoutMs?: number
}

export interface HeartbeatHealth {
  readonly sent: number
  readonly failed: number
  readonly lastFault: string | null
}

export class Heartbeat {
  readonly #options: HeartbeatOptions
  #dueMs = 0
  #sent = 0
  #failed = 0
  #lastFault: string | null = null
  #abort: AbortController | null = null

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  health(): HeartbeatHealth {
    return { sent: this.#sent, failed: this.#failed, lastFault: this.#lastFault }
  }

  /** Beats when due. `isWatching` false: nothing is measured, and the other side must notice that. */
  async beat(nowMs: number, isWatching: boolean): Promise<void> {
    if (nowMs < this.#dueMs || this.#abort || !isWatching) return
    this.#dueMs = nowMs + this.#options.everyMs
    const abort = new AbortController()
    this.#abort = abort
    const timer = setTimeout(() => abort.abort(new Error('no answer')), this.#options.timeoutMs ?? 20_000)
    try {
      await this.#ask(abort.signal)
      this.#sent++
      this.#lastFault = null
    } catch (error) {
      this.#failed++
      const { message, cause } = error as Error
      const fault = cause instanceof Error && cause.message !== '' ? `${message}: ${cause.message}` : message
      if (this.#lastFault === null) this.#options.log.warn({ reason: fault }, 'the heartbeat could not be sent; it will be tried again')
      this.#lastFault = fault
    } finally {
      clearTimeout(timer)
      this.#abort = null
    }
  }

  close(): void {
    this.#abort?.abort(new Error('gpuwarden is stopping'))
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { url, method, host } = this.#options
    const body = method === 'POST' ? { body: JSON.stringify({ host }), headers: { 'content-type': 'application/json' } } : {}
    const answer = await fetch(url, { method, signal, ...body })
    await answer.body?.cancel()
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`)
  }
}

export function heartbeatOf(settings: AlertValues, host: string, log: Log): Heartbeat | null {
  const url = settings['alerts.heartbeat_url']
  const everyMs = settings['alerts.heartbeat_minutes'] * 60_000
  return url === null ? null : new Heartbeat({ url, method: settings['alerts.heartbeat_method'], everyMs, host, log })
}
