/** Where the command gets the past from: the running agent, the records in a log folder, or the logs themselves. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { type HistoryAnswer, type HistoryQuery, HOST_SERIES } from '../core/kinds.ts'
import { findRecordingFiles, readLines } from '../core/recording/file.ts'
import { parseDeviceLine } from '../core/recording/recording.ts'
import { importLogs } from '../store/tiers/import-logs.ts'
import { createLongHistory } from '../store/tiers/long-history.ts'
import { newState, readState, STATE_FILE } from '../store/tiers/state.ts'
import { TierReader } from '../store/tiers/tier-reader.ts'
import { FOLDER } from '../store/tiers/tier-table.ts'
import { findAgent } from './run-agent.ts'

export interface HistorySource {
  /** In messages. */
  readonly place: string
  query(query: HistoryQuery): Promise<HistoryAnswer>
  close(): Promise<void>
}

export interface SourceRequest {
  /** Label, index or id, or `host`; null: the only one. */
  readonly gpu: string | null
  readonly from: number
  readonly to: number
  readonly onProgress: (share: number) => void
}

const ANSWER_LIMIT_MS = 60_000
/** What Date can express: all logs are older. */
const LATEST = 8.64e15

export async function openHistory(config: Config, request: SourceRequest): Promise<HistorySource & { readonly gpu: string }> {
  const isFolderNamed = config.origins['log.dir'].from === 'flag'
  const link = isFolderNamed ? null : await findAgent(config)
  if (!link) return openFolder(config.values['log.dir'], request)
  const isHost = request.gpu === HOST_SERIES
  return {
    place: `the agent at ${link.url}`,
    gpu: request.gpu ?? '',
    query: ({ fields, from, to, stepMs }) => {
      const asked = new URLSearchParams({ field: fields.join(), from: String(from), to: String(to) })
      if (stepMs !== null) asked.set('step', String(stepMs / 1000))
      if (!isHost && request.gpu !== null) asked.set('gpu', request.gpu)
      return link.get<HistoryAnswer>(`/api/v1/${isHost ? 'host/history' : 'history'}?${asked}`, ANSWER_LIMIT_MS)
    },
    close: async () => undefined,
  }
}

async function openFolder(logDir: string, request: SourceRequest): Promise<HistorySource & { readonly gpu: string }> {
  const onDamage = (path: string, error: Error) =>
    process.stderr.write(`gpuwarden: ${path} cannot be read and is left out: ${error.message}\n`)
  const state = await readState(join(logDir, FOLDER))
  if (state?.imported && state.imported.length > 0)
    process.stderr.write('gpuwarden: earlier logs are not all in the history yet: the agent takes them in while it runs\n')
  const made = state === null ? await recordsOfLogs(logDir, request) : null
  const root = made ?? join(logDir, FOLDER)
  const close = async () => {
    if (made !== null) await rm(made, { recursive: true, force: true })
  }
  try {
    const devices = await new TierReader(root, onDamage).devices()
    const gpu = await deviceFor(request.gpu, devices, logDir)
    const history = createLongHistory({ logDir, root, memory: null, isFilled: () => false, onDamage })
    return { place: logDir, gpu, query: (query) => history.query({ ...query, gpu }), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Logs of an agent that kept no records: made for this one time. */
async function recordsOfLogs(logDir: string, { from, to, onProgress }: SourceRequest): Promise<string> {
  await findRecordingFiles(logDir).catch((cause: Error) => {
    throw new Failure(cause.message, { exitCode: EXIT.noSource, cause, hint: 'Give the log folder of an agent with --log-dir.' })
  })
  const root = await mkdtemp(join(tmpdir(), 'gpuwarden-history-'))
  await writeFile(join(root, STATE_FILE), JSON.stringify(newState(LATEST)))
  const share = ({ doneBytes, totalBytes }: { doneBytes: number; totalBytes: number }) =>
    onProgress(totalBytes === 0 ? 1 : doneBytes / totalBytes)
  const faults = await importLogs({ logDir, root, from, to, onProgress: share })
  for (const fault of faults) process.stderr.write(`gpuwarden: ${fault}\n`)
  return root
}

async function deviceFor(name: string | null, devices: readonly string[], logDir: string): Promise<string> {
  const gpus = devices.filter((device) => !device.startsWith(HOST_SERIES))
  if (name === HOST_SERIES) {
    const host = devices.filter((device) => device.startsWith(HOST_SERIES)).sort()[0]
    if (host !== undefined) return host
  }
  if (name !== null && gpus.includes(name)) return name
  if (name === null && gpus.length === 1 && gpus[0] !== undefined) return gpus[0]
  const names = await labelsIn(logDir)
  const found = name === null ? undefined : names.get(name)
  if (found !== undefined && gpus.includes(found)) return found
  const known = [...names].filter(([, id]) => gpus.includes(id)).map(([label]) => label)
  throw new Failure(name === null ? 'which GPU? Give it with --gpu' : `${logDir} has no records of GPU ${name}`, {
    exitCode: name === null ? EXIT.usage : EXIT.noSource,
    hint: gpus.length === 0 ? 'There are no records of any GPU.' : `There are: ${[...known, ...gpus].join(', ')}.`,
  })
}

/** Ids by label, as the newest log of devices says. */
async function labelsIn(logDir: string): Promise<ReadonlyMap<string, string>> {
  const labels = new Map<string, string>()
  const files = (await findRecordingFiles(logDir).catch(() => [])).filter(({ kind }) => kind === 'gpu_devices')
  for (const { path } of files)
    for await (const { lines } of readLines(path, () => undefined))
      for (const line of lines) {
        const parsed = parseDeviceLine(line)
        if (typeof parsed !== 'string') labels.set(parsed.device.label, parsed.device.id)
      }
  return labels.size > 0 ? labels : labelsOfCards(logDir)
}

async function labelsOfCards(logDir: string): Promise<ReadonlyMap<string, string>> {
  try {
    const { cards } = JSON.parse(await readFile(join(logDir, 'gpus.json'), 'utf8')) as { cards: { id: string; index: number }[] }
    return new Map(cards.map(({ id, index }) => [String(index), id]))
  } catch {
    return new Map()
  }
}
