/** E-mail by SMTP. */
import { z } from 'zod'
import type { AlertMessage, Delivery } from '../core/alert-contract.ts'
import { channelKind } from './channel-kind.ts'
import { lineOptions, openSocket } from './email-connection.ts'
import { outcomeOf, refusals, transcript, unreachable } from './email-outcome.ts'
import { secretText } from './http-delivery.ts'
import { ADDRESS, mailAddress } from './mail-address.ts'
import { PartialDeliveries } from './partial-deliveries.ts'
import { oneLine } from './plain-text.ts'
import { type Redact, redactor } from './secrets.ts'

const TIME_LIMIT_MS = 60_000

const schema = z.strictObject({
  server: z.string().regex(/^[\w.:-]+$/, 'expected the name or address of a mail server, such as smtp.example.org'),
  port: z
    .number()
    .int()
    .min(1)
    .max(65_535)
    .nullish()
    .transform((port) => port ?? 587),
  from: mailAddress,
  to: z.array(mailAddress).default([]),
  /** Login name; the sender's address when not given. */
  user: z.string().min(1).nullish(),
  password: secretText.nullish(),
  tls: z.enum(['auto', 'starttls', 'implicit', 'none']).default('auto'),
  tls_verify: z.boolean().default(true),
})

type EmailOptions = z.infer<typeof schema>

export const email = channelKind({
  name: 'email',
  schema,
  written: schema.partial(),
  create(name, options, { timeoutMs = TIME_LIMIT_MS }) {
    const redact = redactor([options.password, loginToken(options)])
    const partial = new PartialDeliveries()
    return {
      name,
      async deliver(message, signal) {
        const to = recipients(message, options.to).filter((address) => !partial.has(message.id, address))
        if (to.length === 0)
          return { ok: false, retry: false, hopeless: true, reason: 'there is no recipient: TO_EMAILS (email.to) is empty' }
        const limit = AbortSignal.timeout(timeoutMs)
        const both = AbortSignal.any([signal, limit])
        const delivery = await send(message, to, { options, signal: both, redact, partial })
        if (delivery.ok || !both.aborted) return delivery
        const why = signal.aborted ? 'canceled' : `it did not finish within ${timeoutMs / 1000} s`
        return { ok: false, retry: true, reason: `${options.server}:${options.port}: ${why}` }
      },
    }
  },
})

interface Sending {
  readonly options: EmailOptions
  readonly signal: AbortSignal
  readonly redact: Redact
  readonly partial: PartialDeliveries
}

async function send(message: AlertMessage, to: readonly string[], { options, signal, redact, partial }: Sending): Promise<Delivery> {
  const { server, port } = options
  const place = `${server}:${port}`
  // Loaded here because most runs never send a mail.
  const [{ createTransport }, { mailOf }] = await Promise.all([import('nodemailer'), import('./email-message.ts')])
  const mail = await mailOf(message, { from: options.from, to, signal })
  const socket = await openSocket(server, port, signal).catch((error: unknown) => unreachable(error, place, redact))
  if ('ok' in socket) return socket
  const said = transcript(redact)
  const transport = createTransport({
    host: server,
    port,
    ...lineOptions({ ...options, user: options.user ?? options.from, password: options.password?.trim() ?? null }),
    ...(message.kind === 'test' ? { logger: said.logger, transactionLog: true } : {}),
    getSocket: (_, callback) => callback(null, { connection: socket }),
  })
  try {
    const info = await transport.sendMail(mail)
    const { passing, text } = refusals(info.rejectedErrors)
    if (passing) {
      partial.add(message.id, info.accepted)
      return {
        ok: false,
        retry: true,
        reason: oneLine(redact(`${place} accepted it for ${info.accepted.length} of ${to.length} recipients: ${text}`)),
      }
    }
    partial.forget(message.id)
    const answer = oneLine(redact(`${place} answered: ${info.response}${text === '' ? '' : `; refused: ${text}`}`))
    return { ok: true, answer: withTranscript(answer, said.text()) }
  } catch (error) {
    const outcome = outcomeOf(error, place, redact)
    return outcome.ok ? outcome : { ...outcome, reason: withTranscript(outcome.reason, said.text()) }
  } finally {
    transport.close()
    // After QUIT there is nothing to wait for; a server that keeps the connection open must not keep the process.
    socket.unref()
    setTimeout(() => socket.destroy(), 1000).unref()
  }
}

function withTranscript(words: string, said: string): string {
  return said === '' ? words : `${words}\n${said}`
}

/** Owners first; nobody twice; an invalid address is left out so that it does not spoil the mail for the others. */
export function recipients(message: AlertMessage, to: readonly string[]): string[] {
  const seen = new Map<string, string>()
  const named = message.letter?.to ?? []
  const usual = named.length > 0 ? named.filter((address) => ADDRESS.test(address)) : to
  for (const address of [...message.owners.filter((owner) => ADDRESS.test(owner)), ...usual]) seen.set(address.toLowerCase(), address)
  return [...seen.values()]
}

function loginToken({ user, from, password }: EmailOptions): string | null {
  return password ? Buffer.from(`\0${user ?? from}\0${password}`).toString('base64') : null
}
