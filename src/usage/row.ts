/** What is counted: one row per hour, GPU, user, job and run, whose figures only grow. */

/** In the order of a line of the ledger; each with its name there. */
export const SUMS = {
  /** GPU time: of the holder, or of nobody. A part of a card counts as its share of the card. */
  gpuSeconds: 'gpu_seconds',
  /** GPU time × utilization. */
  busySeconds: 'busy_seconds',
  /** GPU time for which utilization was known. */
  busyKnownSeconds: 'busy_known_seconds',
  /** GPU time × SM activity. */
  smSeconds: 'sm_seconds',
  smKnownSeconds: 'sm_known_seconds',
  memoryByteSeconds: 'memory_byte_seconds',
  energyJoules: 'energy_joules',
  energyKnownSeconds: 'energy_known_seconds',
  /** Memory held and nothing computed for more than a minute. */
  idleSeconds: 'idle_seconds',
  /** Computing with clocks held down by heat or by the card's protection. */
  throttledSeconds: 'throttled_seconds',
  /** Of runs that ran out of memory, since their last checkpoint. */
  lostOomSeconds: 'lost_oom_seconds',
  /** Of runs that died in another way, since their last checkpoint. */
  lostDeadSeconds: 'lost_dead_seconds',
} as const

export type Sum = keyof typeof SUMS
export type Sums = Record<Sum, number>
export const SUM_NAMES = Object.keys(SUMS) as readonly Sum[]

/** The GPU was free: a user of this name does not exist. */
export const NOBODY = 'nobody'
/** Somebody, but the owner of the process cannot be looked up. */
export const UNKNOWN = 'unknown'

export interface RowKey {
  /** GpuInfo.id */
  readonly gpu: string
  readonly user: string
  /** `slurm:123`, `pod:…`, `docker:…` */
  readonly job: string | null
  /** Run.id */
  readonly run: string | null
}

export interface UsageRow extends RowKey, Sums {
  /** Start of the hour, epoch ms. */
  readonly hour: number
  /** Which stretch of counting it is of: rows of other stretches add up, rows of the same one are newer states of one. */
  readonly part: string
  readonly simulated: boolean
  readonly label: string
  readonly card: string | null
  runName: string | null
}

export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

export function hourOf(at: number): number {
  return Math.floor(at / HOUR_MS) * HOUR_MS
}

export function zeroSums(): Sums {
  return {
    gpuSeconds: 0,
    busySeconds: 0,
    busyKnownSeconds: 0,
    smSeconds: 0,
    smKnownSeconds: 0,
    memoryByteSeconds: 0,
    energyJoules: 0,
    energyKnownSeconds: 0,
    idleSeconds: 0,
    throttledSeconds: 0,
    lostOomSeconds: 0,
    lostDeadSeconds: 0,
  }
}

export function addSums(to: Sums, from: Readonly<Sums>): void {
  for (const name of SUM_NAMES) to[name] += from[name]
}

export function keyText({ gpu, user, job, run }: RowKey): string {
  return `${gpu}\n${user}\n${job ?? ''}\n${run ?? ''}`
}

/** A line of the ledger: what is zero is left out. */
export function encodeRow(row: UsageRow): string {
  const { hour, part, gpu, label, card, user, job, run, runName, simulated } = row
  const line: Record<string, unknown> = { hour: new Date(hour).toISOString().slice(0, 13).concat(':00Z'), part, gpu, label }
  if (card !== null) line.card = card
  line.user = user
  if (job !== null) line.job = job
  if (run !== null) line.run = run
  if (runName !== null) line.run_name = runName
  if (simulated) line.simulated = true
  for (const name of SUM_NAMES) if (row[name] !== 0) line[SUMS[name]] = Math.round(row[name] * 1000) / 1000
  return JSON.stringify(line)
}

/** null: not a row, such as a line that was cut off. */
export function decodeRow(text: string): UsageRow | null {
  let line: Record<string, unknown>
  try {
    line = JSON.parse(text) as Record<string, unknown>
  } catch {
    return null
  }
  if (typeof line !== 'object' || line === null) return null
  const { hour, part, gpu, user } = line
  const at = typeof hour === 'string' ? Date.parse(hour) : Number.NaN
  if (!Number.isFinite(at) || typeof part !== 'string' || typeof gpu !== 'string' || typeof user !== 'string') return null
  const row: UsageRow = {
    ...zeroSums(),
    ...{ hour: hourOf(at), part, gpu, user },
    job: textOf(line.job),
    run: textOf(line.run),
    runName: textOf(line.run_name),
    label: textOf(line.label) ?? gpu,
    card: textOf(line.card),
    simulated: line.simulated === true,
  }
  for (const name of SUM_NAMES) {
    const value = line[SUMS[name]]
    if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) row[name] = value
  }
  return row
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
