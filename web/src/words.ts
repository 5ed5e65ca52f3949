/** Figures and states as people read them. N/A where the device cannot tell. */
import type { Tone } from '../../src/core/gpu-words.ts'
import type { GpuSample, ProcessView, Severity } from '../../src/core/model.ts'

export {
  formatAge,
  formatBytes,
  formatCount,
  formatDuration,
  formatFigure,
  formatMegahertz,
  formatPercent,
  formatRate,
  formatSeconds,
  formatShare,
  formatUsed,
  formatWatts,
  formatWhole,
  NOT_AVAILABLE,
  shortModel,
} from '../../src/core/format.ts'
export {
  type ClockReason,
  clockReasons,
  heatTone,
  memoryTone,
  powerCap,
  powerTone,
  type Tone,
  temperatureTone,
} from '../../src/core/gpu-words.ts'

const TIME_OF_DAY = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
const DATE_AND_TIME = new Intl.DateTimeFormat(undefined, {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

/** Local time; with the date when it is another day's. */
export function clockTime(at: number, now: number): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString()
  return (isToday ? TIME_OF_DAY : DATE_AND_TIME).format(at)
}

/** The zone that all times are shown in: `Europe/Berlin (UTC+2)`. */
export function zoneName(now: number): string {
  const offset = -new Date(now).getTimezoneOffset()
  const hours = Math.floor(Math.abs(offset) / 60)
  const minutes = Math.abs(offset) % 60
  const utc = `UTC${offset < 0 ? '−' : '+'}${hours}${minutes === 0 ? '' : `:${String(minutes).padStart(2, '0')}`}`
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone
  return name === 'UTC' || name === undefined ? 'UTC' : `${name} (${utc})`
}

export function severityTone(severity: Severity): Tone {
  return severity === 'info' ? 'muted' : severity
}

const STATES: Readonly<Record<GpuSample['state'], string>> = {
  ok: 'ok',
  lost: 'LOST',
  reset_required: 'RESET REQUIRED',
  suspended: 'suspended',
  error: 'CANNOT BE READ',
  no_driver: 'NO DRIVER',
}

export function troubleOf(sample: GpuSample): string | null {
  if (sample.state === 'ok') return null
  return `${STATES[sample.state]}${sample.stateReason === null ? '' : `: ${sample.stateReason}`}`
}

/** Who uses a GPU, most memory first: `ada, carl`; null when nobody does, or it is not known. */
export function ownersOf(processes: readonly ProcessView[]): string | null {
  const bytes = new Map<string, number>()
  for (const { info, memoryUsedBytes } of processes) {
    const user = info?.user ?? 'unknown'
    bytes.set(user, (bytes.get(user) ?? 0) + (memoryUsedBytes ?? 0))
  }
  return bytes.size === 0
    ? null
    : [...bytes]
        .sort((a, b) => b[1] - a[1])
        .map(([user]) => user)
        .join(', ')
}

/** `docker:4f1c…`, `slurm 123`, `pod 8a…`: where a process runs; null when it is a plain one. */
export function placeOf(process: ProcessView): string | null {
  const { info } = process
  if (!info) return null
  if (info.slurmJob !== null) return `slurm ${info.slurmJob}`
  if (info.pod !== null) return `pod ${info.pod.slice(0, 12)}`
  return info.container === null ? null : info.container.replace(/^(\w+:)(\w{12})\w*$/, '$1$2')
}
