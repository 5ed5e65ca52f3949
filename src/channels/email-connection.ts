/** How to reach the mail server: which TLS mode, whether to log in, and a socket that can be aborted. */
import { connect, isIP, type Socket } from 'node:net'
import type { SMTPTransportOptions } from 'nodemailer/lib/smtp-transport'

export type TlsMode = 'auto' | 'starttls' | 'implicit' | 'none'

export interface MailServer {
  readonly server: string
  readonly port: number
  readonly tls: TlsMode
  /** False accepts any certificate. */
  readonly tls_verify: boolean
  readonly user: string
  readonly password: string | null
}

/** A password crosses a network only under TLS with a valid certificate, or with `tls: none` set on purpose. Port 465 is always TLS. */
export function lineOptions({ server, port, tls, tls_verify, user, password }: MailServer): SMTPTransportOptions {
  const mode = tls === 'auto' && port === 465 ? 'implicit' : tls
  const isLocal = server === 'localhost' || server === '::1' || (isIP(server) === 4 && server.startsWith('127.'))
  const mustEncrypt = mode === 'starttls' || (mode === 'auto' && (port === 587 || (password !== null && !isLocal)))
  const checksCertificate = tls_verify && (mode === 'implicit' || mustEncrypt)
  return {
    secure: mode === 'implicit',
    requireTLS: mustEncrypt,
    ignoreTLS: mode === 'none',
    tls: { rejectUnauthorized: checksCertificate, minVersion: 'TLSv1.2' },
    ...(password === null ? {} : { auth: { user, pass: password } }),
  }
}

/** nodemailer has no abort: destroying its socket stops it. */
export function openSocket(server: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server, port })
    const onAbort = () => socket.destroy(new Error('canceled'))
    signal.addEventListener('abort', onAbort)
    socket.once('close', () => signal.removeEventListener('abort', onAbort))
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
    if (signal.aborted) onAbort()
  })
}
