/** The HTTP server: the API, the live stream, /metrics and, where given, the web UI's files. */
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { z } from 'zod'
import type { AlertNews } from '../core/alert-contract.ts'
import type { AgentState, History, Log, LongHistory, Sink } from '../core/kinds.ts'
import { type Route, route } from '../core/route.ts'
import { aliveRoute, apiRoutes, type MetricsText, metricsRoute } from './api-routes.ts'
import { type Assets, assetReply } from './assets.ts'
import { createDispatch, type Dispatch, type Target } from './dispatch.ts'
import { createGate, type Gate } from './gate.ts'
import { createHostCheck } from './host-check.ts'
import { indexPage } from './index-page.ts'
import { type Address, type Listener, openListener } from './listener.ts'
import { openApiDocument } from './openapi.ts'
import { createRouteTable, pathOf } from './route-table.ts'
import { sessionRoutes } from './session-routes.ts'
import type { ServerSettings } from './settings.ts'
import { type ProcessControl, signalRoute } from './signal-route.ts'
import { createStream, type StreamLimits } from './stream.ts'
import { loadToken } from './token.ts'

export interface ServerOptions {
  readonly state: AgentState
  readonly history: History | LongHistory
  readonly metrics: MetricsText
  readonly settings: ServerSettings
  readonly log: Log
  readonly version: string
  /** The state of other parts of the agent, by name: `{ store: … }`. */
  readonly extraHealth?: () => Readonly<Record<string, unknown>>
  readonly routes?: readonly Route[]
  readonly assets?: Assets
  /** For the live stream; null: alerts are off. */
  readonly alertNews?: AlertNews | null
  /** Checks the identity of a process before it gets a signal; without it none gets one. */
  readonly processControl?: ProcessControl
  readonly streamLimits?: Partial<StreamLimits>
}

export interface GpuwardenServer {
  /** Opens server.port. Throws when it is taken, or when others could reach it without a token. */
  listen(): Promise<Address>
  /** Opens a second port with only /metrics and /healthz. */
  metricsListen(port: number): Promise<Address>
  /** Ends the streams, and every connection within two seconds. */
  close(): Promise<void>
  readonly sink: Required<Sink>
  readonly routes: readonly Route[]
}

export function createServer(options: ServerOptions): GpuwardenServer {
  const { state, history, metrics, settings, version, assets } = options
  const log = options.log.child({ room: 'server' })
  const boot = randomBytes(6).toString('hex')
  const stream = createStream({
    state,
    boot,
    version,
    maxClients: settings['server.max_clients'],
    log,
    alertNews: options.alertNews ?? null,
    ...(options.streamLimits ? { limits: options.streamLimits } : {}),
  })
  const extraHealth = options.extraHealth ?? (() => ({}))
  const routes: readonly Route[] = [
    ...apiRoutes({ state, history, metrics, stream, extraHealth }),
    ...sessionRoutes({ state, version, gate: async () => (await prepare()).gate, canKill }),
    signalRoute({ state, log, control: options.processControl ?? null, isAllowed: async () => canKill((await prepare()).gate) }),
    ...(options.routes ?? []),
    ...selfDescription(() => routes, version, assets),
  ]
  const listeners: Listener[] = []
  let ready: Promise<{ readonly gate: Gate; readonly dispatch: Dispatch }> | null = null

  function prepare(): Promise<{ readonly gate: Gate; readonly dispatch: Dispatch }> {
    ready ??= loadToken(settings, log).then((token) => {
      const names = { boundHost: settings['server.host'], hostname: state.hostname, allowedHosts: settings['server.allowed_hosts'] }
      const gate = createGate(token, { now: () => state.now() })
      return { gate, dispatch: createDispatch({ log, gate, allowsHost: createHostCheck(names) }) }
    })
    return ready
  }

  /** Never without a token: everybody on this machine could do it then. */
  function canKill(gate: Gate): boolean {
    return settings['server.allow_kill'] && gate.required && options.processControl !== undefined
  }

  async function open(served: readonly Route[], port: number, flag: string, files?: Assets): Promise<Address> {
    const host = settings['server.host']
    const onRequest = createRouter(served, (await prepare()).dispatch, files)
    const listener = await openListener({ host, port, flag, onRequest, log })
    listeners.push(listener)
    log.info({ url: listener.address.url }, 'listening')
    return listener.address
  }

  return {
    listen: () => open(routes, settings['server.port'], '--port', assets),
    metricsListen: (port) => open([aliveRoute, metricsRoute(metrics)], port, '--prometheus-port'),
    async close() {
      await stream.sink.close()
      await Promise.all(listeners.splice(0).map((listener) => listener.close()))
    },
    sink: stream.sink,
    routes,
  }
}

function createRouter(routes: readonly Route[], dispatch: Dispatch, files: Assets | undefined): RequestListener {
  const find = createRouteTable(routes)
  return (incoming, outgoing) => {
    const method = incoming.method ?? 'GET'
    const path = pathOf(incoming.url ?? '/')
    const found = find(method, path)
    const target = found === null ? fileOrNothing(files, method, path) : (found.route ?? wrongMethod(found.methods))
    void dispatch(target, { incoming, outgoing, path, params: found?.params ?? {} })
  }
}

function wrongMethod(methods: readonly string[]): Target {
  const allow = methods.includes('GET') ? ['HEAD', ...methods] : methods
  return {
    handler: ({ refuse, raw }) => {
      const method = JSON.stringify(raw.incoming.method?.slice(0, 20))
      return refuse('method_not_allowed', `${method} is not supported here.`, `Use ${allow.join(' or ')}.`, { allow: allow.join(', ') })
    },
  }
}

/** Files hold no data, and the sign-in page is one of them: they are served without the token. */
function fileOrNothing(files: Assets | undefined, method: string, path: string): Target {
  const isReading = method === 'GET' || method === 'HEAD'
  const asset = isReading ? (files?.(path) ?? null) : null
  if (asset) return { open: true, handler: ({ header }) => assetReply(asset, header) }
  return { handler: ({ refuse }) => refuse('not_found', 'There is nothing at this path.', 'See / or /openapi.json for the list of paths.') }
}

function selfDescription(routes: () => readonly Route[], version: string, assets: Assets | undefined): readonly Route[] {
  let document: string | null = null
  return [
    route({
      method: 'GET',
      path: '/openapi.json',
      summary: 'Description of this API, in OpenAPI 3.1',
      answer: z.record(z.string(), z.unknown()),
      handler: ({ reply }) => {
        document ??= JSON.stringify(openApiDocument(routes(), version))
        return reply({ body: document })
      },
    }),
    route({
      method: 'GET',
      path: '/',
      summary: 'The web UI, or a list of the routes',
      answer: z.string(),
      answerType: 'text/html',
      ...(assets ? { open: true } : {}),
      handler: ({ reply, header }) => {
        const page = assets?.('/')
        return page ? assetReply(page, header) : reply({ type: 'text/html; charset=utf-8', body: indexPage(routes(), version) })
      },
    }),
  ]
}
