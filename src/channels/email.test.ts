import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { describe, expect, it } from 'vitest'
import type { AlertMessage } from '../core/alert-contract.ts'
import { group, hostile, message, resolved, test } from './alert-message.fixture.ts'
import { type Behavior, channelContract } from './channel.contract.ts'
import { email, recipients } from './email.ts'
import { lineOptions } from './email-connection.ts'

const PASSWORD = 'T0pSecret-a1b2c3d4e5'
const stop = new AbortController().signal

interface Mailbox {
  readonly port: number
  readonly mails: { from: string; to: string[]; text: string; user: unknown; secure: boolean }[]
  /** What each recipient is answered; 250 when nothing is given. */
  readonly refusals: Map<string, string>
  close(): Promise<void>
}

const refusal = (text: string) => Object.assign(new Error(text.slice(4)), { responseCode: Number(text.slice(0, 3)) })

async function openMailbox(behavior: Behavior = 'ok', options: SMTPServerOptions = {}): Promise<Mailbox> {
  const mails: Mailbox['mails'] = []
  const refusals = new Map<string, string>()
  const sockets = new Set<Socket>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: [],
    logger: false,
    closeTimeout: 200,
    onAuth: (auth, _session, callback) =>
      auth.password === PASSWORD ? callback(null, { user: auth.username }) : callback(refusal('535 5.7.8 wrong password')),
    onMailFrom: (_address, _session, callback) => {
      if (behavior === 'hang') return
      if (behavior === 'drop') for (const socket of sockets) socket.destroy()
      else if (behavior === 'refuse') callback(refusal('550 5.7.1 not you'))
      else if (behavior === 'later') callback(refusal('451 4.7.1 come back later'))
      else if (behavior === 'echo')
        callback(refusal(`550 you said ${PASSWORD} ${Buffer.from(`\0gpu@example.org\0${PASSWORD}`).toString('base64')}`))
      else callback()
    },
    onRcptTo: (address, _session, callback) => {
      const text = refusals.get(address.address)
      callback(text === undefined ? null : refusal(text))
    },
    onData: (stream, session, callback) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const from = session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address
        const to = session.envelope.rcptTo.map(({ address }) => address)
        mails.push({ from, to, text: Buffer.concat(chunks).toString(), user: session.user, secure: session.secure === true })
        callback(null, 'queued as 4711')
      })
    },
    ...options,
  })
  server.on('error', () => undefined)
  server.server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    refusals,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}

function open(port: number, options: object = {}, timeoutMs = 20_000) {
  const base = { server: '127.0.0.1', port, from: 'gpu@example.org', to: ['ops@example.org'], tls_verify: false }
  return email.open('email', { ...base, ...options }, { env: {}, stateDir: '/', timeoutMs })
}

async function mailed(options: object = {}, what: AlertMessage = message, server: SMTPServerOptions = {}) {
  const box = await openMailbox('ok', server)
  const delivery = await open(box.port, options).deliver(what, stop)
  await box.close()
  const text = box.mails[0]?.text ?? ''
  const [head = ''] = text.split('\r\n\r\n')
  return { delivery, box, text, head: head.replace(/\r\n[ \t]+/g, ' ') }
}

channelContract('email', async (behavior) => {
  const box = await openMailbox(behavior)
  if (behavior === 'down') await box.close()
  return {
    channel: open(box.port, { password: PASSWORD, tls: 'starttls' }, behavior === 'hang' ? 2500 : 20_000),
    secrets: [PASSWORD],
    says: 'queued as 4711',
    // Lines that were only broken to be short are made whole again.
    received: () => box.mails.map(({ text }) => text.replace(/=\r\n/g, '').replace(/ \r\n/g, ' ')).join('\n'),
    close: box.close,
  }
})

describe('email over the line', () => {
  it('logs in under STARTTLS', async () => {
    const { delivery, box } = await mailed({ password: PASSWORD, tls: 'starttls' })
    expect(delivery).toMatchObject({ ok: true })
    expect(box.mails).toMatchObject([{ from: 'gpu@example.org', to: ['ops@example.org'], user: 'gpu@example.org', secure: true }])
  })

  it('speaks TLS from the first byte', async () => {
    const { box } = await mailed({ password: PASSWORD, tls: 'implicit', user: 'robot' }, message, { secure: true })
    expect(box.mails).toMatchObject([{ user: 'robot', secure: true }])
  })

  it('uses a plain relay without a login', async () => {
    const { box } = await mailed({ tls: 'none' }, message, { disabledCommands: ['AUTH', 'STARTTLS'] })
    expect(box.mails).toMatchObject([{ secure: false }])
  })

  it('takes TLS where a relay offers it, whatever its certificate', async () => {
    const { box } = await mailed({ tls_verify: true })
    expect(box.mails).toMatchObject([{ secure: true }])
  })

  it('does not trust an unknown certificate with a password', async () => {
    const { delivery, box } = await mailed({ password: PASSWORD, tls: 'starttls', tls_verify: true })
    expect(delivery).toMatchObject({ ok: false, retry: true })
    expect(box.mails).toHaveLength(0)
  })

  it('does not fall back to plain text where STARTTLS is required', async () => {
    const { delivery } = await mailed({ tls: 'starttls' }, message, { disabledCommands: ['STARTTLS'] })
    expect(delivery).toMatchObject({ ok: false })
  })

  it('never sends a password over a network in the clear unless configured to', () => {
    const far = { server: 'mail.example.org', port: 25, tls: 'auto', tls_verify: true, user: 'u', password: 'p' } as const
    expect(lineOptions(far)).toMatchObject({ requireTLS: true, tls: { rejectUnauthorized: true } })
    expect(lineOptions({ ...far, password: null })).toMatchObject({ requireTLS: false })
    expect(lineOptions({ ...far, server: '127.0.0.1' })).toMatchObject({ requireTLS: false })
    expect(lineOptions({ ...far, port: 587, password: null })).toMatchObject({ requireTLS: true })
    expect(lineOptions({ ...far, port: 465 })).toMatchObject({ secure: true, tls: { rejectUnauthorized: true } })
    expect(lineOptions({ ...far, tls: 'none' })).toMatchObject({ requireTLS: false, ignoreTLS: true })
  })

  it('is refused for good with a wrong password, and says what to check', async () => {
    const box = await openMailbox()
    const delivery = await open(box.port, { password: 'wr0ng-passw0rd', tls: 'starttls' }).deliver(message, stop)
    expect(delivery).toMatchObject({ ok: false, retry: false, reason: expect.stringMatching(/535.*EMAIL_PASSWORD/) })
    expect(JSON.stringify(delivery)).not.toContain('wr0ng')
    await box.close()
  })

  it('bears a server that is slow but answers', async () => {
    const slow: SMTPServerOptions = { onConnect: (_session, callback) => void setTimeout(callback, 700) }
    expect((await mailed({}, message, slow)).delivery).toMatchObject({ ok: true })
  })

  it('shows the conversation in a test, without the password', async () => {
    const { delivery } = await mailed({ password: PASSWORD, tls: 'starttls' }, test)
    const answer = delivery.ok ? delivery.answer : ''
    expect(answer).toMatch(/^S: 220 /m)
    expect(answer).toMatch(/^C: MAIL FROM:<gpu@example.org>/m)
    expect(answer).toMatch(/^C: AUTH PLAIN/m)
    expect(answer).toMatch(/queued as 4711/)
    expect(answer).not.toContain(PASSWORD)
    expect(answer).not.toContain(Buffer.from(`\0gpu@example.org\0${PASSWORD}`).toString('base64'))
  })
})

describe('email recipients', () => {
  it('puts owners first and nobody twice', () => {
    expect(recipients({ ...message, owners: ['alice@example.org', 'OPS@example.org', 'nobody'] }, ['ops@example.org'])).toEqual([
      'alice@example.org',
      'ops@example.org',
    ])
  })

  it('tries again for those who were put off, and only for them', async () => {
    const box = await openMailbox()
    const channel = open(box.port, { to: ['a@example.org', 'b@example.org'] })
    box.refusals.set('b@example.org', '450 4.2.1 greylisted')
    expect(await channel.deliver(message, stop)).toMatchObject({ ok: false, retry: true, reason: expect.stringContaining('1 of 2') })
    box.refusals.clear()
    expect(await channel.deliver(message, stop)).toMatchObject({ ok: true })
    expect(box.mails.map(({ to }) => to)).toEqual([['a@example.org'], ['b@example.org']])
    await box.close()
  })

  it('does not hold the others up for one who does not exist', async () => {
    const box = await openMailbox()
    box.refusals.set('b@example.org', '550 5.1.1 no such user')
    const delivery = await open(box.port, { to: ['a@example.org', 'b@example.org'] }).deliver(message, stop)
    expect(delivery).toMatchObject({ ok: true, answer: expect.stringContaining('no such user') })
    expect(await open(box.port, { to: ['b@example.org'] }).deliver(message, stop)).toMatchObject({ ok: false, retry: false })
    await box.close()
  })

  it('says so when there is nobody', async () => {
    expect(await open(1, { to: [] }).deliver(message, stop)).toMatchObject({
      ok: false,
      retry: false,
      reason: expect.stringContaining('TO_EMAILS'),
    })
  })
})

describe('email content', () => {
  it('has a subject and headers to filter by, text, HTML and the chart inside', async () => {
    const { head, text } = await mailed()
    expect(head).toMatch(/^Subject: \[gpuwarden\] CRITICAL box GPU 0: memory leak: Memory of/m)
    expect(head).toMatch(/^X-Gpuwarden-Detector: memory_leak$/m)
    expect(head).toMatch(/^X-Gpuwarden-Severity: critical$/m)
    expect(head).toMatch(/^Auto-Submitted: auto-generated$/m)
    expect(head).toMatch(/^Message-ID: <gpuwarden.m-01J9Z7@example.org>$/m)
    expect(text).toContain('Content-Type: text/plain')
    expect(text).toContain('Content-Type: text/html')
    expect(text).toMatch(/Content-Type: image\/png[\s\S]*Content-Id: <chart-0@gpuwarden>/i)
    expect(text).toContain('iVBORw0KGgo')
  })

  it('threads what belongs together', async () => {
    const [first, last] = await Promise.all([mailed(), mailed({}, resolved)])
    const references = /^References: (.*)$/m
    expect(last.head.match(references)?.[1]).toBe(first.head.match(references)?.[1])
    expect(first.head).not.toMatch(/^In-Reply-To/m)
    expect(last.head).toMatch(/^In-Reply-To: <gpuwarden.thread-t-5f2c-leak@example.org>$/m)
    expect(last.head).toMatch(/^Subject: \[gpuwarden\] RESOLVED box GPU 0/m)
  })

  it('marks a simulation in subject and body, and has few charts for many alerts', async () => {
    const { head, text } = await mailed({}, group)
    expect(head).toMatch(/^Subject: \[gpuwarden\] SIMULATED CRITICAL box: 30 alerts/m)
    expect(text).toContain('SIMULATED: these figures')
    expect(text.match(/^Content-Type: image\/png/gm)).toHaveLength(4)
  })

  it('keeps hostile names out of its headers', async () => {
    const { head, box } = await mailed({}, hostile)
    const names = head.split('\r\n').map((line) => line.split(':')[0])
    expect(names).not.toContain('Bcc')
    expect(box.mails[0]?.to).toEqual(['ops@example.org'])
    expect(new Set(names).size).toBe(names.length)
  })
})

describe('email options', () => {
  it.each([
    [{ from: 'nobody' }, /email\.from: expected an e-mail address/],
    [{ to: ['a@b\r\nBcc: c@d'] }, /email\.to\.0: expected an e-mail address/],
    [{ server: 'smtp://x/' }, /email\.server: expected the name or address of a mail server/],
    [{ port: 70_000 }, /email\.port/],
  ])('refuses %j', (options, expected) => {
    expect(() => open(25, options)).toThrow(expected)
  })
})
