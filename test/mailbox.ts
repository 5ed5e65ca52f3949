/** A real mail server on this machine that keeps what it gets. */
import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'

export interface Mail {
  readonly to: readonly string[]
  /** Headers unfolded, body as it came. */
  readonly subject: string
  readonly text: string
  readonly user: unknown
}

export interface Mailbox {
  readonly port: number
  readonly mails: Mail[]
  /** Answers to RCPT TO, such as `550 5.1.1 no such user`; null: the mail is taken. */
  refusal: { readonly code: number; readonly words: string } | null
  close(): Promise<void>
}

export interface MailboxOptions {
  /** 0: any free one. */
  readonly port?: number
  /** Who logs in has to know it; null: nobody is asked. */
  readonly password?: string | null
  /** Asked with every mail before it is kept: an Error with a `responseCode` refuses it. */
  readonly judge?: (mail: Mail) => Promise<Error | null>
  /** False: the connection is dropped at once; a promise: the server says nothing until then. */
  readonly greet?: () => boolean | Promise<void>
}

export async function openMailbox({ port = 0, password = null, judge, greet }: MailboxOptions = {}): Promise<Mailbox> {
  const mails: Mail[] = []
  const sockets = new Set<Socket>()
  const server = new SMTPServer({
    authOptional: password === null,
    allowInsecureAuth: true,
    logger: false,
    closeTimeout: 200,
    onAuth: (auth, _session, callback) =>
      password === null || auth.password === password
        ? callback(null, { user: auth.username })
        : callback(Object.assign(new Error('5.7.8 bad credentials, says the server'), { responseCode: 535 })),
    onRcptTo: (_address, _session, callback) =>
      callback(box.refusal ? Object.assign(new Error(box.refusal.words), { responseCode: box.refusal.code }) : null),
    onConnect: (_session, callback) => {
      const answer = greet?.() ?? true
      if (answer === true) callback()
      else if (answer === false) for (const socket of sockets) socket.destroy()
      else void answer.then(() => callback())
    },
    onData: (stream, session, callback) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const text = Buffer.concat(chunks)
          .toString()
          .replace(/\r\n[ \t]+/g, ' ')
        const subject = decoded(/^Subject: (.*)$/m.exec(text)?.[1]?.trim() ?? '')
        const mail = { to: session.envelope.rcptTo.map(({ address }) => address), subject, text, user: session.user }
        void Promise.resolve(judge?.(mail) ?? null).then((refusal) => {
          if (refusal) return callback(refusal)
          mails.push(mail)
          callback(null, 'kept as 4711')
        })
      })
    },
  })
  server.on('error', () => undefined)
  server.server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()))
  const box: Mailbox = {
    port: (server.server.address() as AddressInfo).port,
    mails,
    refusal: null,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
  return box
}

/** A subject with other than ASCII characters comes in encoded words (RFC 2047). */
function decoded(subject: string): string {
  return subject.replace(/=\?UTF-8\?Q\?([^?]*)\?=(?: (?==\?))?/gi, (_, word: string) =>
    decodeURIComponent(
      word
        .replaceAll('_', ' ')
        .replace(/%/g, '%25')
        .replace(/=([0-9A-F]{2})/gi, '%$1'),
    ),
  )
}
