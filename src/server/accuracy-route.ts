/** GET /api/v1/accuracy: how often forecasts came true on this machine. */
import { z } from 'zod'
import { type Route, route } from '../core/route.ts'

export interface AccuracyView {
  readonly rows: readonly {
    readonly detector: string
    readonly forecasts: number
    readonly cameTrue: number
    readonly didNotHappen: number
    readonly unknown: number
    readonly open: number
    readonly medianLeadSeconds: number | null
    readonly medianErrorSeconds: number | null
  }[]
  readonly outOfMemory: number
  readonly withoutWarning: number
}

const NOTHING: AccuracyView = { rows: [], outOfMemory: 0, withoutWarning: 0 }

const count = z.number().int()
const seconds = z.number().nullable()

/** `read` null: nothing is logged. */
export function accuracyRoute(days: number, read: (() => Promise<AccuracyView>) | null): Route {
  return route({
    method: 'GET',
    path: '/api/v1/accuracy',
    summary: `How often forecasts of the last ${days} days came true, by detector, as gpuwarden accuracy says it`,
    query: z.strictObject({}),
    answer: z.strictObject({
      days: z.number(),
      isLogged: z.boolean().describe('false: the agent keeps no log, so nothing can be judged'),
      rows: z.array(
        z.strictObject({
          detector: z.string(),
          forecasts: count,
          cameTrue: count,
          didNotHappen: count,
          unknown: count.describe('The run ended in another way, or nobody saw the end'),
          open: count,
          medianLeadSeconds: seconds.describe('Between the forecast and what it forecast, where it came true'),
          medianErrorSeconds: seconds,
        }),
      ),
      outOfMemory: count.describe('Runs that ran out of memory'),
      withoutWarning: count.describe('Those of them that were not forecast'),
    }),
    errors: ['unavailable'],
    async handler({ refuse }) {
      try {
        return { days, isLogged: read !== null, ...(read === null ? NOTHING : await read()) }
      } catch (error) {
        return refuse('unavailable', `The findings cannot be read now: ${(error as Error).message}`, 'Try again in a few seconds.')
      }
    },
  })
}
