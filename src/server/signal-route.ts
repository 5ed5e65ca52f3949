/** POST /api/v1/processes/:pid/signal: ends a process on a GPU, if it is still the same one. */
import { z } from 'zod'
import type { AgentState, Log } from '../core/kinds.ts'
import type { ProcessView } from '../core/model.ts'
import { type Reply, type Route, type RouteContext, route } from '../core/route.ts'
import type { ErrorCode } from '../core/route-errors.ts'

export interface ProcessControl {
  /** Whether the PID is this process now; the reason when not. */
  identify(process: ProcessView): { readonly ok: true } | { readonly ok: false; readonly reason: string }
}

export interface SignalOptions {
  readonly state: AgentState
  readonly log: Log
  readonly control: ProcessControl | null
  readonly isAllowed: () => Promise<boolean>
}

const LONGEST_COMMAND = 200

const body = z.strictObject({
  signal: z.enum(['SIGINT', 'SIGTERM', 'SIGKILL']),
  startedAt: z.number().describe('`info.startedAt` of the process'),
})
type Body = z.infer<typeof body>

interface Denial {
  readonly code: ErrorCode
  readonly message: string
  readonly hint?: string
}

export function signalRoute({ state, log, control, isAllowed }: SignalOptions): Route<unknown, Body> {
  function send(pid: number, { signal, startedAt }: Body, found: readonly ProcessView[]): Denial | null {
    const [process] = found
    if (!process) return { code: 'unknown_process', message: `Process ${pid} is not on a GPU now.`, hint: 'See /api/v1/processes.' }
    if (isOurs(state, pid)) return { code: 'not_permitted', message: `Process ${pid} is part of gpuwarden or of the system.` }
    if (!isLive(state, found))
      return { code: 'conflict', message: 'This process is simulated or recorded: there is nothing to send a signal to.' }
    if (process.info?.startedAt !== startedAt) return changed(pid, 'it did not start at the given time')
    // The last check before the signal, without a pause: a PID can go to another process at any time.
    const identity = control?.identify(process) ?? { ok: false, reason: 'processes cannot be identified here' }
    if (!identity.ok) return changed(pid, identity.reason)
    return kill(pid, signal)
  }

  return route<unknown, Body>({
    method: 'POST',
    path: '/api/v1/processes/:pid/signal',
    summary: 'Sends a signal to a process on a GPU; needs server.allow_kill and a token',
    query: z.strictObject({}),
    body,
    bodyLimitBytes: 1024,
    answer: z.strictObject({ pid: z.number().int(), signal: body.shape.signal, sentAt: z.number().describe('Epoch milliseconds') }),
    errors: ['kill_disabled', 'unknown_process', 'process_changed', 'not_permitted', 'conflict'],
    async handler(context) {
      const { params, body: asked, address } = context
      const pid = /^[1-9]\d{0,9}$/.test(params.pid ?? '') ? Number(params.pid) : 0
      const allowed = await isAllowed()
      const found = state.processes().filter((process) => process.pid === pid)
      const denial = allowed ? send(pid, asked, found) : DISABLED
      const { user = null, command = null } = found[0]?.info ?? {}
      log.warn(
        {
          request_id: context.requestId,
          address,
          pid: params.pid?.slice(0, 20),
          signal: asked.signal,
          user,
          command: command?.join(' ').slice(0, LONGEST_COMMAND) ?? null,
          result: denial?.code ?? 'sent',
        },
        denial ? 'no signal was sent to a process' : 'a signal was sent to a process',
      )
      return denial ? refusal(context, denial) : { pid, signal: asked.signal, sentAt: state.now() }
    },
  })
}

const DISABLED: Denial = {
  code: 'kill_disabled',
  message: 'Signals cannot be sent from here.',
  hint: 'Set server.allow_kill to true, and set a token (server.token_file).',
}

function refusal({ refuse }: RouteContext<unknown, Body>, { code, message, hint }: Denial): Reply {
  return refuse(code, message, hint)
}

function changed(pid: number, reason: string): Denial {
  return { code: 'process_changed', message: `No signal was sent to process ${pid}: ${reason}.`, hint: 'Check /api/v1/processes again.' }
}

/** The agent, its samplers, and what must never get a signal. */
function isOurs(state: AgentState, pid: number): boolean {
  return pid <= 1 || pid === process.pid || state.health().some((source) => source.pid === pid)
}

function isLive(state: AgentState, found: readonly ProcessView[]): boolean {
  const gpus = state.gpus()
  return found.every(({ gpu }) => gpus.some(({ info }) => info.id === gpu && info.provenance === 'live'))
}

function kill(pid: number, signal: Body['signal']): Denial | null {
  try {
    process.kill(pid, signal)
    return null
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EPERM')
      return { code: 'not_permitted', message: `Process ${pid} belongs to another user, and gpuwarden may not send it signals.` }
    if (code === 'ESRCH') return { code: 'unknown_process', message: `Process ${pid} has ended.` }
    throw error
  }
}
