/** What the mail server's words mean: 4xx passes by itself, 5xx does not, and a line that broke is tried again. */
import type { Delivery } from '../core/alert-contract.ts'
import { oneLine } from './plain-text.ts'
import type { Redact } from './secrets.ts'

interface MailError {
  readonly message: string
  readonly code?: string | undefined
  readonly responseCode?: number | undefined
  readonly response?: string | undefined
  readonly command?: string | undefined
  readonly rejectedErrors?: readonly MailError[] | undefined
}

/** Codes of nodemailer that no retry would change. */
const HOPELESS = new Set(['ECONFIG', 'EENVELOPE', 'EAUTH', 'ENOAUTH', 'EMESSAGE'])

export function outcomeOf(error: unknown, place: string, redact: Redact): Delivery {
  const { message, code, responseCode, response, command, rejectedErrors } = error as MailError
  const codes = rejectedErrors?.map((one) => one.responseCode) ?? [responseCode]
  // With several refused recipients, one temporary refusal is reason enough to retry.
  const retry =
    codes.some((one) => one !== undefined && one >= 400 && one < 500) ||
    (codes.every((one) => one === undefined) && !HOPELESS.has(code ?? ''))
  const said = response ?? message
  const where = command === undefined || command === 'CONN' ? '' : ` to ${command}`
  return { ok: false, retry, reason: oneLine(redact(`${place} answered${where}: ${said}${hint(code, said)}`)) }
}

/** A connection that never opened did not answer anything. */
export function unreachable(error: unknown, place: string, redact: Redact): Delivery {
  return { ok: false, retry: true, reason: oneLine(redact(`${place} cannot be reached: ${(error as Error).message}`)) }
}

function hint(code: string | undefined, said: string): string {
  if (code === 'EAUTH') return ' (check EMAIL_ADDRESS and EMAIL_PASSWORD; many providers need an app password)'
  if (/wrong version number|packet length too long/i.test(said))
    return ' (this port does not start with TLS: try port 587, or tls: starttls)'
  if (code === 'ETLS') return ' (TLS failed: check the port and the certificate, or see tls in docs/channels.md)'
  return ''
}

export function refusals(rejectedErrors: readonly MailError[] | undefined): { readonly passing: boolean; readonly text: string } {
  const all = rejectedErrors ?? []
  return {
    passing: all.some((one) => one.responseCode !== undefined && one.responseCode >= 400 && one.responseCode < 500),
    text: all.map((one) => one.response ?? one.message).join('; '),
  }
}

/** Collects the SMTP dialog for the `test` command. nodemailer leaves passwords out; the redactor makes sure. */
export function transcript(redact: Redact) {
  const lines: string[] = []
  const note = (entry: { tnx?: string }, text: unknown) => {
    if (lines.length >= 200) return
    if (entry.tnx !== 'client' && entry.tnx !== 'server') return
    for (const line of String(text).split(/\r?\n/))
      if (line !== '') lines.push(`${entry.tnx === 'client' ? 'C' : 'S'}: ${oneLine(redact(line), 300)}`)
  }
  const silent = () => undefined
  const logger = { trace: silent, debug: note, info: silent, warn: silent, error: silent, fatal: silent }
  return { logger, text: () => lines.join('\n') }
}
