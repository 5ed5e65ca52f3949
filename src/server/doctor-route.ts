/** GET /api/v1/doctor: what `gpuwarden doctor` reports, from a separate process. */
import { z } from 'zod'
import { type Route, route } from '../core/route.ts'

const KEPT_MS = 60_000
const SHORTEST_INTERVAL_MS = 10_000

const checks = z.array(
  z.strictObject({
    name: z.string(),
    state: z.enum(['ok', 'advice', 'missing']),
    kind: z.string().optional().describe('What was found about a GPU, such as driver_no_driver'),
    message: z.string(),
    fix: z.string().nullable(),
  }),
)

export interface DoctorOptions {
  /** Runs it and returns what it printed; throws with the reason when it did not finish. */
  readonly examine: () => Promise<string>
  readonly now: () => number
}

interface Outcome {
  readonly at: number
  readonly tookMs: number
  readonly checks: z.infer<typeof checks> | string
}

const query = z.strictObject({ fresh: z.enum(['0', '1']).optional().describe('1: check again, at most every ten seconds') })
type Query = z.infer<typeof query>

export function doctorRoute({ examine, now }: DoctorOptions): Route<Query> {
  let running: Promise<Outcome> | null = null
  let last: Outcome | null = null

  async function look(): Promise<Outcome> {
    const at = now()
    const startedMs = performance.now()
    const found = await examine().then(read, (error: Error) => error.message)
    last = { at, tookMs: Math.round(performance.now() - startedMs), checks: found }
    running = null
    return last
  }

  /** One at a time; a recent result is returned again. */
  function outcome(isFresh: boolean): Outcome | Promise<Outcome> {
    if (running) return running
    const ageMs = last === null ? Number.POSITIVE_INFINITY : Math.abs(now() - last.at - last.tookMs)
    if (last && ageMs < (isFresh || typeof last.checks === 'string' ? SHORTEST_INTERVAL_MS : KEPT_MS)) return last
    running = look()
    return running
  }

  return route<Query>({
    method: 'GET',
    path: '/api/v1/doctor',
    summary: 'What is missing on this machine and how to fix it; kept for a minute',
    query,
    answer: z.strictObject({ at: z.number().describe('Epoch milliseconds'), tookMs: z.number(), checks }),
    errors: ['unavailable'],
    async handler({ query: asked, refuse }) {
      const { at, tookMs, checks: found } = await outcome(asked.fresh === '1')
      if (typeof found !== 'string') return { at, tookMs, checks: found }
      return refuse('unavailable', `The check did not finish: ${found}.`, 'Run "gpuwarden doctor" in a terminal.')
    },
  })
}

function read(printed: string): Outcome['checks'] {
  try {
    return z.object({ checks }).parse(JSON.parse(printed)).checks
  } catch {
    return 'it printed something other than its checks'
  }
}
