/** GET /api/v1/stream: lets a client join the live stream. */
import { z } from 'zod'
import type { AgentState } from '../core/kinds.ts'
import { namesGpu } from '../core/known/about-gpu.ts'
import { type Route, route } from '../core/route.ts'
import { knownGpus } from './gpu-name.ts'
import type { Stream } from './stream.ts'
import { createFilter, EVENT_TYPES } from './stream-filter.ts'

const KEEP_ALIVE_MS = 30_000
const MOST_NAMES = 128

const query = z.strictObject({
  types: z
    .string()
    .optional()
    .describe(`Only these events, separated by commas: ${EVENT_TYPES.join(', ')}`),
  gpus: z.string().optional().describe('Only these GPUs, by label, index or id, separated by commas'),
  lastEventId: z.string().optional().describe('Continue after this event; the header Last-Event-ID takes precedence'),
})

type Query = z.infer<typeof query>

export function streamRoute({ state, stream }: { readonly state: AgentState; readonly stream: Stream }): Route<Query> {
  return route<Query>({
    method: 'GET',
    path: '/api/v1/stream',
    summary: 'Live stream of all samples, findings and alerts, as server-sent events',
    query,
    answer: z
      .string()
      .describe('Server-sent events; `data` is JSON whose `type` is the name of the event. The data of `alerts` is an AlertsEvent.'),
    answerType: 'text/event-stream',
    errors: ['invalid_gpu', 'too_many_clients'],
    handler({ query: asked, refuse, reply, header, raw, address }) {
      const types = names(asked.types)
      const wrong = types?.find((type) => !EVENT_TYPES.some((known) => known === type))
      if (wrong !== undefined) {
        return refuse(
          'invalid_parameter',
          `types: ${JSON.stringify(wrong.slice(0, 60))} is not an event.`,
          `Give some of: ${EVENT_TYPES.join(', ')}.`,
        )
      }
      const gpus = names(asked.gpus)
      const known = state.gpus()
      // Before the first reading no GPU is known, and a name may still be right.
      const stranger = known.length === 0 ? undefined : gpus?.find((name) => !known.some((view) => namesGpu(view.info, name)))
      if (stranger !== undefined) {
        return refuse('invalid_gpu', `gpus: no GPU has the label, index or id ${JSON.stringify(stranger.slice(0, 60))}.`, knownGpus(known))
      }
      const type = 'text/event-stream; charset=utf-8'
      const { incoming, outgoing, headers, taken } = raw
      if (incoming.method === 'HEAD') return reply({ type })
      if (stream.full) {
        const { clients, maxClients } = stream.health()
        const message = `The stream has ${clients} clients; the limit is ${maxClients}.`
        return refuse('too_many_clients', message, 'Close another web UI, or raise server.max_clients.', { 'retry-after': '5' })
      }
      // Ended by closing the connection, not by chunks: an event is then one write of a buffer that all clients share.
      outgoing.useChunkedEncodingByDefault = false
      outgoing.shouldKeepAlive = false
      outgoing.writeHead(200, { ...headers, 'content-type': type, 'x-accel-buffering': 'no' })
      incoming.socket.setKeepAlive(true, KEEP_ALIVE_MS)
      const lastEventId = header('last-event-id') ?? asked.lastEventId ?? ''
      stream.join(outgoing, { filter: createFilter(types, gpus), lastEventId: lastEventId === '' ? null : lastEventId, address })
      return taken
    },
  })
}

/** null: not given, so everything. */
function names(list: string | undefined): string[] | null {
  if (list === undefined) return null
  const found = [...new Set(list.split(',').map((name) => name.trim()))].filter((name) => name !== '').slice(0, MOST_NAMES)
  return found.length === 0 ? null : found
}
