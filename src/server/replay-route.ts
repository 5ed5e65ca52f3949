/** /api/v1/replay: where a recording is, what is marked on its time line, and pausing, speeding and moving it. */
import { z } from 'zod'
import type { PlaybackCommand, PlaybackMark, PlaybackState } from '../core/playback.ts'
import { type Route, route } from '../core/route.ts'

const LONGEST_BODY_BYTES = 1024
const FASTEST = 100_000

export interface ReplayView extends PlaybackState {
  readonly firstAt: number | null
  /** null until the recording was read to its end. */
  readonly lastAt: number | null
  readonly marks: readonly PlaybackMark[]
  /** Why it cannot go back; null: it can. */
  readonly forwardOnly: string | null
}

export interface ReplayControl {
  view(): ReplayView
  /** Why not; null: it was passed on. */
  steer(command: PlaybackCommand): string | null
}

const time = z.number().nullable().describe('Epoch milliseconds')
const answer = z.strictObject({
  state: z.enum(['playing', 'paused', 'seeking', 'ended']),
  at: time,
  speed: z.number().nullable().describe('1: as recorded; null: as fast as it goes'),
  jumps: z.number().int().describe('Completed jumps; ask for everything again after each'),
  firstAt: time,
  lastAt: time,
  marks: z.array(
    z.strictObject({
      at: z.number(),
      severity: z.enum(['info', 'warning', 'critical']),
      kind: z.string().describe('The detector, or run_ended'),
      message: z.string(),
      run: z.string().nullable(),
    }),
  ),
  forwardOnly: z.string().nullable().describe('Why it cannot go back; null: it can'),
})

const body = z
  .strictObject({
    playing: z.boolean().optional().describe('false pauses; true plays on, after the end from the beginning'),
    speed: z.union([z.number().min(0.01).max(FASTEST), z.literal('max')]).optional(),
    at: z.number().min(-8.64e15).max(8.64e15).optional().describe('Go to this moment, epoch milliseconds'),
  })
  .refine((given) => Object.keys(given).length > 0, 'expected at least one of playing, speed, at')
type Body = z.infer<typeof body>

export function replayRoutes(replay: ReplayControl): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/v1/replay',
      summary: 'The recording that is played: where it is, and what is marked on its time line; only with --source replay:PATH',
      query: z.strictObject({}),
      answer,
      handler: () => replay.view(),
    }),
    route<unknown, Body>({
      method: 'POST',
      path: '/api/v1/replay',
      summary: 'Pauses the recording, changes its speed, or goes to another moment',
      query: z.strictObject({}),
      body,
      bodyLimitBytes: LONGEST_BODY_BYTES,
      answer,
      errors: ['conflict'],
      handler({ body: { playing, speed, at }, refuse }) {
        const why = replay.steer({ playing, at, speed: speed === 'max' ? Number.MAX_VALUE : speed })
        return why === null ? replay.view() : refuse('conflict', why)
      },
    }),
  ] as readonly Route[]
}
