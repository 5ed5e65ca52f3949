/** The routes of memory snapshots. Files are named by ids that the agent gave; no path ever comes from a request. */
import { z } from 'zod'
import { mediaType } from '../../core/bounded-body.ts'
import { formatBytes, printable } from '../../core/format.ts'
import type { Log } from '../../core/kinds.ts'
import { BAND_KINDS, MOST_COLUMNS } from '../../core/memory/snapshot-picture.ts'
import { type Reply, type Route, type RouteContext, route } from '../../core/route.ts'
import type { Analyses } from './analyses.ts'
import type { Question, SnapshotFile } from './messages.ts'
import type { TakeOutcome, Upload, Uploads } from './uploads.ts'

/** A file that the SDK of a run wrote. */
export interface RunFile extends SnapshotFile {
  readonly id: string
  readonly run: string
  readonly runName: string
  readonly rank: number
  readonly at: number
  readonly kind: 'out of memory' | 'asked for'
  /** It lies on another machine, or its name is none that the SDK gives: this is not opened. */
  readonly notOpened: string | null
}

export interface SnapshotRoutesOptions {
  /** Newest first. */
  readonly files: () => Promise<readonly RunFile[]>
  readonly uploads: Uploads
  readonly analyses: Analyses
  readonly log: Log
}

/** Small enough to come in within the time that a request has, over a slow line too. */
export const PIECE_BYTES = 4 * 1024 * 1024
const LONGEST_NAME = 200

const listed = z.object({
  id: z.string(),
  name: z.string().describe('Of the file'),
  origin: z.enum(['run', 'upload']),
  run: z.string().nullable().describe('Id of the run that wrote it'),
  runName: z.string().nullable(),
  rank: z.number().nullable(),
  at: z.number().describe('When it was written or uploaded, epoch milliseconds'),
  kind: z.enum(['out of memory', 'asked for', 'uploaded']),
  bytes: z.number().nullable(),
  receivedBytes: z.number().nullable().describe('Of an upload: less than `bytes` while it is not complete'),
  notOpened: z.string().nullable().describe('Why it cannot be shown here; null: it can'),
})

const whole = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const device = z.coerce.number().int().min(0).max(255).default(0)

const columnsQuery = z.strictObject({
  device,
  kind: z.enum(BAND_KINDS).default('line'),
  from: whole.describe('First event'),
  to: whole.describe('The event after the last'),
  count: z.coerce.number().int().min(1).max(MOST_COLUMNS).default(1024),
})
const momentQuery = z.strictObject({ device, index: z.coerce.number().int().min(-1).max(Number.MAX_SAFE_INTEGER).describe('Of an event') })
const diffQuery = z.strictObject({ before: z.string().describe('Id of the other snapshot'), at: z.enum(['peak', 'end']).default('peak') })
const beginPost = z.strictObject({
  name: z
    .string()
    .min(1)
    .transform((given) => printable(given.slice(-LONGEST_NAME))),
  bytes: z.number().int().min(1),
})
const contentQuery = z.strictObject({ offset: whole.describe('How much was sent before') })
const drawn = z.looseObject({}).describe('What the page draws; see src/core/memory/snapshot-picture.ts')

export function snapshotRoutes(options: SnapshotRoutesOptions): readonly Route[] {
  const { uploads, analyses, log } = options
  const ask = async ({ params, refuse, reply }: RouteContext, question: Question) => {
    const answer = await analyses.ask(params.id ?? '', question)
    if (answer === null) return refuse('conflict', 'This snapshot is not in memory.', 'GET /api/v1/snapshots/:id reads it.')
    return answer.ok ? reply({ body: answer.body }) : refuse('unavailable', `${answer.reason}.`)
  }
  return [
    route({
      method: 'GET',
      path: '/api/v1/snapshots',
      summary: 'Memory snapshots that runs wrote or people uploaded, newest first',
      answer: z.object({ snapshots: z.array(listed), mostUploadBytes: z.number(), pieceBytes: z.number() }),
      async handler() {
        const all = [...(await options.files()).map(runEntry), ...uploads.list().map(uploadEntry)].sort((a, b) => b.at - a.at)
        return { snapshots: all, mostUploadBytes: uploads.mostBytes, pieceBytes: PIECE_BYTES }
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/snapshots/:id',
      summary: 'Reads a snapshot in another process; ask again until it is ready, then the answer has its pictures',
      answer: z.object({
        state: z.enum(['reading', 'ready', 'failed']),
        share: z.number(),
        reason: z.string().nullable(),
        picture: drawn.nullable(),
      }),
      errors: ['unknown_snapshot', 'unavailable'],
      async handler(context) {
        const { refuse, reply } = context
        const file = await fileOf(options, context.params.id ?? '')
        if ('refusal' in file) return file.refusal(context)
        const state = analyses.open(file.id, file)
        if (state === 'busy')
          return refuse('unavailable', 'Other snapshots are being read.', 'Try again in a moment.', { 'retry-after': '5' })
        if (state.kind === 'failed') return { state: 'failed', share: 0, reason: state.reason, picture: null }
        if (state.kind === 'reading') return { state: 'reading', share: state.share, reason: null, picture: null }
        const answer = await analyses.ask(file.id, { ask: 'picture' })
        if (!answer?.ok) return { state: 'failed', share: 0, reason: answer?.reason ?? 'the analysis ended', picture: null }
        return reply({ body: `{"state":"ready","share":1,"reason":null,"picture":${answer.body}}` })
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/snapshots/:id/columns',
      summary: 'Columns of a stretch of the timeline',
      query: columnsQuery,
      answer: drawn,
      errors: ['conflict', 'unavailable'],
      handler: (context) => ask(context as RouteContext, { ask: 'columns', ...context.query }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/snapshots/:id/moment',
      summary: 'The segments after an event, with what is in them',
      query: momentQuery,
      answer: drawn,
      errors: ['conflict', 'unavailable'],
      handler: (context) => ask(context as RouteContext, { ask: 'moment', ...context.query }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/snapshots/:id/diff',
      summary: 'What changed from another snapshot to this one',
      query: diffQuery,
      answer: drawn,
      errors: ['unknown_snapshot', 'conflict', 'unavailable'],
      async handler(context) {
        const before = await fileOf(options, context.query.before)
        if ('refusal' in before) return before.refusal(context as RouteContext)
        return ask(context as RouteContext, { ask: 'diff', before: { path: before.path, name: before.name }, at: context.query.at })
      },
    }),
    route({
      method: 'POST',
      path: '/api/v1/snapshots',
      summary: 'Announces an upload; its content follows in pieces',
      body: beginPost,
      bodyLimitBytes: 4096,
      answer: z.object({ id: z.string(), pieceBytes: z.number() }),
      errors: ['body_too_large', 'conflict'],
      async handler({ body: { name, bytes }, refuse, address }) {
        if (bytes > uploads.mostBytes)
          return refuse(
            'body_too_large',
            uploads.mostBytes === 0
              ? 'Uploads are turned off (server.max_upload_mb).'
              : `The file has ${formatBytes(bytes)}; uploads are limited to ${formatBytes(uploads.mostBytes)} (server.max_upload_mb).`,
            'Use "gpuwarden snapshot FILE --html OUT" where the file is.',
          )
        const upload = await uploads.begin(name, bytes, (id) => analyses.forget(id))
        if (!upload) return refuse('conflict', 'Other uploads are in progress and take all the room.', 'Wait for them, or remove one.')
        log.info({ snapshot: upload.id, name, bytes, address }, 'a memory snapshot is uploaded')
        return { id: upload.id, pieceBytes: PIECE_BYTES }
      },
    }),
    route({
      method: 'PUT',
      path: '/api/v1/snapshots/:id/content',
      summary: 'Takes the next piece of an upload: at most 4 MiB, of type application/octet-stream',
      query: contentQuery,
      answer: z.object({ id: z.string(), receivedBytes: z.number(), bytes: z.number() }),
      errors: ['unknown_snapshot', 'unsupported_media_type', 'body_too_large', 'invalid_body', 'conflict'],
      async handler(context) {
        const upload = uploads.find(context.params.id ?? '')
        if (!upload) return unfinished(unknownSnapshot(context as RouteContext))
        const { incoming } = context.raw
        if (mediaType(incoming) !== 'application/octet-stream' || incoming.headers['content-encoding'] !== undefined)
          return unfinished(
            context.refuse('unsupported_media_type', 'A piece is of type application/octet-stream, without Content-Encoding.'),
          )
        const outcome = await uploads.take(upload, context.query.offset, incoming, PIECE_BYTES)
        if (outcome !== 'taken') return unfinished(context.refuse(...refusalOf(outcome, upload)))
        return { id: upload.id, receivedBytes: upload.received, bytes: upload.bytes }
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/v1/snapshots/:id',
      summary: 'Removes an upload, also one that is not complete; files of runs stay',
      answer: z.object({ id: z.string() }),
      errors: ['unknown_snapshot', 'not_permitted'],
      async handler(context) {
        const id = context.params.id ?? ''
        if (!uploads.find(id)) {
          const isOfRun = (await options.files()).some((file) => file.id === id)
          return isOfRun
            ? context.refuse('not_permitted', 'This file belongs to the run that wrote it.', 'Remove it where it lies.')
            : unknownSnapshot(context)
        }
        analyses.forget(id)
        await uploads.remove(id)
        log.info({ snapshot: id, address: context.address }, 'an uploaded memory snapshot was removed')
        return { id }
      },
    }),
  ] as readonly Route[]
}

type FoundFile = (SnapshotFile & { readonly id: string }) | { readonly refusal: (context: RouteContext) => Reply }

async function fileOf({ files, uploads }: SnapshotRoutesOptions, id: string): Promise<FoundFile> {
  const upload = uploads.find(id)
  if (upload) {
    if (upload.received === upload.bytes) return { id, path: upload.path, name: upload.name }
    return { refusal: ({ refuse }) => refuse('unavailable', `The upload is not complete: ${upload.received} of ${upload.bytes} bytes.`) }
  }
  const file = (await files()).find((one) => one.id === id)
  if (!file) return { refusal: unknownSnapshot }
  const { notOpened } = file
  if (notOpened !== null) return { refusal: ({ refuse }) => refuse('unavailable', `This snapshot is not opened here: ${notOpened}.`) }
  return { id, path: file.path, name: file.name }
}

function unknownSnapshot({ refuse }: Pick<RouteContext, 'refuse'>): Reply {
  return refuse('unknown_snapshot', 'There is no such snapshot.', 'See /api/v1/snapshots. Uploads are gone when the agent was restarted.')
}

/** The rest of a body that was not read must not be taken for the next request. */
function unfinished(answer: Reply): Reply {
  return { ...answer, headers: { ...answer.headers, connection: 'close' } }
}

function refusalOf(outcome: Exclude<TakeOutcome, 'taken'>, { received, bytes }: Upload): Parameters<RouteContext['refuse']> {
  switch (outcome) {
    case 'busy':
      return ['conflict', 'Another piece of this upload is coming in.', 'Send one piece after the other.']
    case 'wrong_offset':
      return ['conflict', `The next piece begins at ${received} of ${bytes} bytes.`, `Send it with offset=${received}.`]
    case 'too_large':
      return ['body_too_large', `A piece has at most ${PIECE_BYTES} bytes, and no more than were announced.`]
    case 'cut_off':
      return ['invalid_body', 'The piece ended early.', 'Send it again.']
  }
}

function runEntry({ id, name, run, runName, rank, at, kind, notOpened }: RunFile): z.infer<typeof listed> {
  return { id, name, origin: 'run', run, runName, rank, at, kind, bytes: null, receivedBytes: null, notOpened }
}

function uploadEntry({ id, name, bytes, received, touchedAt }: Upload): z.infer<typeof listed> {
  const own = { origin: 'upload', run: null, runName: null, rank: null, kind: 'uploaded', notOpened: null } as const
  return { id, name, ...own, at: touchedAt, bytes, receivedBytes: received }
}
