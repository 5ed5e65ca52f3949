/** Sends the mails about usage when they are due: through the mail channel, kept in the journal of the alerts, once each. */
import type { Alerts, Edition } from '../alerts/alerts-api.ts'
import { EXIT, Failure } from '../core/failure.ts'
import type { Log } from '../core/kinds.ts'
import { usageLetters } from '../usage/letters.ts'
import { duePeriod } from '../usage/period.ts'
import type { Usage } from '../usage/usage.ts'
import type { ConfigValues } from './config.ts'

const LOOK_MS = 60_000

export interface UsageMailOptions {
  readonly values: ConfigValues
  readonly usage: Usage
  readonly alerts: Alerts
  readonly host: string
  readonly log: Log
  readonly now: () => number
  readonly lookMs?: number
}

/** Throws where the configuration names a channel that sends no mail. */
export function checkUsageMail(values: ConfigValues): void {
  const name = values['usage.mail_channel']
  const type = Object.hasOwn(values.channels, name) ? values.channels[name]?.type : name === 'email' ? 'email' : undefined
  if (values['usage.mail'] === 'off' || type === 'email') return
  throw new Failure(
    `usage.mail_channel: expected the name of a channel of type email; got "${name}"${type === undefined ? '' : ` of type ${type}`}`,
    {
      exitCode: EXIT.usage,
      hint: 'Mail is set up in docs/channels.md.',
    },
  )
}

export class UsageMail {
  readonly #options: UsageMailOptions
  readonly #timer: NodeJS.Timeout
  #looking: Promise<void> | null = null
  #fault: string | null = null

  constructor(options: UsageMailOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.look(), options.lookMs ?? LOOK_MS).unref()
  }

  /** Resolves when what is due is in the outbox. */
  look(): Promise<void> {
    this.#looking ??= this.#send()
      .catch((error: unknown) => this.#note((error as Error).message))
      .finally(() => {
        this.#looking = null
      })
    return this.#looking
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #send(): Promise<void> {
    const { values, usage, alerts, host, now } = this.#options
    const every = values['usage.mail']
    if (every === 'off') return
    const period = duePeriod(every, values['usage.mail_hour'], now())
    const edition: Edition = { name: `usage ${every}`, of: period.name }
    if (alerts.isPosted(edition)) return
    const question = { from: period.from, to: period.to, user: null, simulated: false } as const
    const [byUser, byGpu] = [await usage.summary({ ...question, by: 'user' }), await usage.summary({ ...question, by: 'gpu' })]
    const letters = usageLetters(byUser, byGpu, { host, period, to: values['usage.mail_to'], owners: values['alerts.owners'] })
    if (!alerts.post(values['usage.mail_channel'], edition, letters))
      return this.#note('there is no such channel, or alerts are not kept on disk now')
    this.#fault = null
    if (letters.length > 0) this.#options.log.info({ period: period.name, letters: letters.length }, 'mails about usage are on their way')
  }

  #note(fault: string): void {
    if (this.#fault !== fault) this.#options.log.warn({ reason: fault }, `the mails about usage cannot be sent now: ${fault}`)
    this.#fault = fault
  }
}
