/** One port: opens it, says why when that fails, and closes it within a time limit. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EXIT, Failure } from '../core/failure.ts'
import type { Log } from '../core/kinds.ts'
import { boundConnections } from './connections.ts'

export interface Address {
  readonly url: string
  readonly port: number
}

export interface ListenerOptions {
  readonly host: string
  readonly port: number
  /** What to change when the port is taken: `--port`. */
  readonly flag: string
  readonly onRequest: RequestListener
  readonly log: Log
}

export interface Listener {
  readonly address: Address
  close(): Promise<void>
}

const HEADERS_TIMEOUT_MS = 5000
const REQUEST_TIMEOUT_MS = 30_000
const CHECK_INTERVAL_MS = 5000
/** Connections that the system keeps until they are accepted: where they do not fit, a client tries again only after a second. */
const BACKLOG = 4096
const CLOSE_TIMEOUT_MS = 1500
/** A client that still sends after the answer may finish within this time, so that it can read the answer. */
const LINGER_MS = 500

export async function openListener({ host, port, flag, onRequest, log }: ListenerOptions): Promise<Listener> {
  const options = { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: CHECK_INTERVAL_MS }
  const server = createServer(options, (incoming, outgoing) => {
    outgoing.once('finish', () => cutOffLater(incoming))
    onRequest(incoming, outgoing)
  })
  boundConnections(server)
  const bindTo = host.replace(/^\[|\]$/g, '')
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port, flag)))
    server.listen({ port, host: bindTo, backlog: BACKLOG }, () => {
      server.removeAllListeners('error')
      server.on('error', (error) => log.error({ err: error, host, port }, 'the HTTP server failed'))
      resolve()
    })
  })
  const bound = (server.address() as AddressInfo).port
  return { address: { url: `http://${urlHost(bindTo)}:${bound}`, port: bound }, close: () => closeServer(server) }
}

function cutOffLater(incoming: IncomingMessage): void {
  if (incoming.complete) return
  const cutOff = () => {
    if (!incoming.complete) incoming.socket.destroy()
  }
  setTimeout(cutOff, LINGER_MS).unref()
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number, flag: string): Error {
  const options = { exitCode: EXIT.noListen, cause: error }
  switch (error.code) {
    case 'EADDRINUSE':
      return new Failure(
        `Port ${port} on ${host} is taken by another program, perhaps another gpuwarden: stop it, or choose another port with ${flag}.`,
        options,
      )
    case 'EACCES':
      return new Failure(`Port ${port} on ${host} is not allowed for this user: choose one above 1023 with ${flag}.`, options)
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Failure(`${host} is not an address of this machine: choose another with --host, such as 127.0.0.1.`, options)
    default:
      return new Failure(
        `Port ${port} on ${host} cannot be opened (${error.code ?? error.message}): choose another with --host and ${flag}.`,
        options,
      )
  }
}

/** An address that works from this machine, also when listening on all. */
function urlHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS)
    server.close(() => {
      clearTimeout(timer)
      resolve()
    })
    server.closeIdleConnections()
  })
}
