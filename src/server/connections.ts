/** Bounds the connections of a port, in all and by address. Who opens many and says nothing loses its oldest, and keeps nobody out. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOf } from './failed-tries.ts'

export interface ConnectionLimits {
  readonly all: number
  readonly byAddress: number
}

const LIMITS: ConnectionLimits = { all: 1024, byAddress: 256 }

export function boundConnections(server: Server, limits = LIMITS): void {
  /** Oldest first. */
  const all = new Set<Socket>()
  const byAddress = new Map<string, Set<Socket>>()
  const exchanges = new WeakMap<Socket, { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse }>()

  /** It has sent a whole request and waits for the answer, or follows the stream. */
  function isServed(socket: Socket): boolean {
    const exchange = exchanges.get(socket)
    return exchange?.incoming.complete === true && !exchange.outgoing.writableFinished
  }

  /** False: all of them are being served. */
  function closeOldest(sockets: ReadonlySet<Socket>): boolean {
    for (const socket of sockets) {
      if (isServed(socket)) continue
      forget(socket)
      socket.destroy()
      return true
    }
    return false
  }

  function forget(socket: Socket): void {
    all.delete(socket)
    const address = addresses.get(socket) ?? ''
    const others = byAddress.get(address)
    others?.delete(socket)
    if (others?.size === 0) byAddress.delete(address)
  }

  const addresses = new WeakMap<Socket, string>()
  server.on('connection', (socket: Socket) => {
    const address = networkOf(socket.remoteAddress ?? '')
    const others = byAddress.get(address) ?? new Set()
    const isRoom = (others.size < limits.byAddress || closeOldest(others)) && (all.size < limits.all || closeOldest(all))
    if (!isRoom) {
      socket.destroy()
      return
    }
    addresses.set(socket, address)
    all.add(socket)
    byAddress.set(address, others.add(socket))
    socket.once('close', () => forget(socket))
  })
  server.on('request', (incoming, outgoing) => exchanges.set(incoming.socket, { incoming, outgoing }))
}
