/** The two receivers of alerts, a webhook and a mail server: each keeps what it gets, and fails as it is told. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Mail, type Mailbox, openMailbox } from '../mailbox.ts'
import type { Receipt, ReceivedAlert } from './ledger.ts'
import type { ReceiverFault } from './schedule.ts'

const SLOW_MS = 4000
const HEARD_MS = 100

export interface Receiver {
  readonly port: number
  set(fault: ReceiverFault | null): Promise<void>
  close(): Promise<void>
}

/** `onMessage` hears of a message before the receiver answers. */
export async function openWebhook(receipts: Receipt[], onMessage: () => void): Promise<Receiver> {
  let fault: ReceiverFault | null = null
  const server: Server = createServer((request, response) => {
    if (fault === 'reset') return void request.socket.destroy()
    let body = ''
    request.on('data', (part) => {
      body += part
    })
    request.on('end', () => {
      const receipt = ofWebhook(JSON.parse(body) as Payload)
      receipts.push(receipt)
      onMessage()
      if (fault === 'hang') return
      if (fault === 'busy') return void response.writeHead(500).end('busy')
      if (fault === 'refused') return void response.writeHead(404).end('no such hook')
      const accept = () => {
        receipt.isAcknowledged = !response.destroyed
        response.end('ok')
        // A sender that gave up in the meantime has closed the connection; one that heard it keeps it.
        setTimeout(() => {
          receipt.isHeard = receipt.isAcknowledged && !request.socket.destroyed
        }, HEARD_MS)
      }
      if (fault === 'slow') setTimeout(accept, SLOW_MS)
      else accept()
    })
  })
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  return {
    port,
    close,
    async set(next) {
      const before = fault
      fault = next
      if (before === 'hang') server.closeAllConnections()
      if (next === 'refuse') await close()
      else if (before === 'refuse') await listen(port)
    },
  }
}

export async function openMailReceiver(receipts: Receipt[], onMessage: () => void): Promise<Receiver> {
  let fault: ReceiverFault | null = null
  let box: Mailbox
  const judge = async (mail: Mail): Promise<Error | null> => {
    const receipt = ofMail(mail)
    receipts.push(receipt)
    onMessage()
    if (fault === 'busy') return Object.assign(new Error('4.3.2 try again later'), { responseCode: 451 })
    if (fault === 'refused') return Object.assign(new Error('5.7.1 not today'), { responseCode: 550 })
    if (fault === 'slow') await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
    receipt.isAcknowledged = true
    receipt.isHeard = Date.now() - receipt.at < SLOW_MS * 2
    return null
  }
  const greet = () => (fault === 'reset' ? false : fault === 'hang' ? new Promise<void>(() => undefined) : true)
  box = await openMailbox({ judge, greet })
  const { port } = box
  return {
    port,
    close: () => box.close(),
    async set(next) {
      const before = fault
      fault = next
      const wasAway = before === 'refuse' || before === 'hang'
      if (before === 'hang' || next === 'refuse') await box.close()
      if (wasAway && next !== 'refuse') box = await openMailbox({ port, judge, greet })
    },
  }
}

interface Payload {
  readonly id: string
  readonly alerts: readonly (ReceivedAlert & { readonly detector: string; readonly gpu: { readonly label: string } | null })[]
}

function ofWebhook({ id, alerts }: Payload): Receipt {
  return {
    ...{ channel: 'webhook', id, at: Date.now(), isAcknowledged: false, isHeard: false, text: '' },
    detectors: alerts.map(({ detector }) => detector),
    statuses: alerts.map(({ status }) => status),
    gpus: alerts.flatMap(({ gpu }) => gpu?.label ?? []),
    alerts: alerts.map(({ fingerprint, status, severity, firedAt }) => ({ fingerprint, status, severity, firedAt })),
  }
}

function ofMail({ text }: Mail): Receipt {
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'mi').exec(text)?.[1]?.trim() ?? ''
  const list = (name: string) => header(name).split(', ')
  return {
    ...{ channel: 'mail', at: Date.now(), isAcknowledged: false, isHeard: false, alerts: [] },
    id: header('Message-ID').replace(/^<gpuwarden\.|@.*$/g, ''),
    detectors: list('X-Gpuwarden-Detector'),
    statuses: list('X-Gpuwarden-Status'),
    gpus: list('X-Gpuwarden-Gpu'),
    // Long lines are broken with a trailing equals sign.
    text: text.replace(/=\r?\n|\r?\n[ \t]+/g, ''),
  }
}
