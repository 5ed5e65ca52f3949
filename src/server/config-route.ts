/** GET /api/v1/config: the configuration, and where it came from. */
import { z } from 'zod'
import { type Route, route } from '../core/route.ts'

export interface ConfigView {
  readonly file: string | null
  readonly warnings: readonly string[]
  readonly settings: readonly ConfigRow[]
}

export interface ConfigRow {
  readonly key: string
  /** Secrets are masked. */
  readonly value: unknown
  readonly from: string
  readonly variable: string
  readonly help: string
}

export function configRoute(view: () => ConfigView): Route {
  return route({
    method: 'GET',
    path: '/api/v1/config',
    summary: 'The current configuration, and where each value came from; secrets are masked',
    query: z.strictObject({}),
    answer: z.strictObject({
      file: z.string().nullable(),
      warnings: z.array(z.string()),
      settings: z.array(z.strictObject({ key: z.string(), value: z.unknown(), from: z.string(), variable: z.string(), help: z.string() })),
    }),
    handler: () => view(),
  })
}
