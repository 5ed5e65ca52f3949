/** Names of our files, so that no others are touched: `gpu_metrics_20250730_123456.jsonl`, then `_p4242` and `_2` where needed. */

/** In the order they are written: a reader of half a batch then has the samples first. */
export const STREAMS = ['gpu_metrics', 'gpu_devices', 'gpu_events', 'host_metrics', 'training_metrics', 'findings'] as const

export type StreamName = (typeof STREAMS)[number]

export interface OwnName {
  readonly stream: StreamName
  /** Epoch ms of the file's opening. */
  readonly openedAt: number
  /** PID of a writer that shared the folder with another one. */
  readonly pid: number | null
  readonly compressed: boolean
}

const PATTERN = new RegExp(
  `^(${STREAMS.join('|')})_(\\d{4})(\\d\\d)(\\d\\d)_(\\d\\d)(\\d\\d)(\\d\\d)(?:_p(\\d+))?(?:_\\d+)?\\.jsonl(\\.gz)?$`,
)

export const LEFTOVER_SUFFIX = '.gz.tmp'

/** `pid` marks the files of a second writer; `attempt` 2, 3 … is for a name that is taken. */
export function fileName(stream: StreamName, at: number, pid: number | null, attempt: number): string {
  const iso = new Date(at).toISOString()
  const stamp = `${iso.slice(0, 4)}${iso.slice(5, 7)}${iso.slice(8, 10)}_${iso.slice(11, 13)}${iso.slice(14, 16)}${iso.slice(17, 19)}`
  return `${stream}_${stamp}${pid === null ? '' : `_p${pid}`}${attempt > 1 ? `_${attempt}` : ''}.jsonl`
}

/** null: not a file of ours. */
export function parseFileName(name: string): OwnName | null {
  const match = PATTERN.exec(name)
  if (!match) return null
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(2, 8).map(Number)
  return {
    stream: match[1] as StreamName,
    openedAt: Date.UTC(year, month - 1, day, hour, minute, second),
    pid: match[8] === undefined ? null : Number(match[8]),
    compressed: match[9] !== undefined,
  }
}
