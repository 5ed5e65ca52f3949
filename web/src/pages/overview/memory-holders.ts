/** Who holds the memory of a GPU: parts that always add up to its total. */
import { ledgerOf } from '../../../../src/core/memory/ledger.ts'
import type { GpuSample, ProcessView } from '../../../../src/core/model.ts'
import { formatBytes } from '../../words.ts'

export interface Holder {
  readonly key: string
  readonly label: string
  readonly title: string
  readonly bytes: number
  readonly ratio: number
  /** Class of its color; null for what is free. */
  readonly fill: string | null
  readonly pid: number | null
}

export interface Holding {
  readonly totalBytes: number
  readonly usedRatio: number
  readonly holders: readonly Holder[]
}

const MOST_SHOWN = 5
const COLOURS = 6

/** null when the device does not report memory in use. */
export function holdingOf(sample: GpuSample, processes: readonly ProcessView[], isOfHost = false): Holding | null {
  const ledger = ledgerOf({
    totalBytes: sample.memoryTotalBytes,
    usedBytes: sample.memoryUsedBytes,
    driverReservedBytes: sample.memoryReservedBytes,
    processes: sample.processes,
    allocators: [],
    isOfHost,
    freeBytes: sample.memoryFreeBytes,
  })
  if (!ledger || sample.memoryUsedBytes === null) return null
  const { totalBytes: total, entries } = ledger
  const holder = (key: string, label: string, title: string, bytes: number, fill: string | null, pid: number | null = null): Holder => ({
    key,
    label,
    title: `${title}: ${formatBytes(bytes)}`,
    bytes,
    ratio: bytes / total,
    fill,
    pid,
  })
  const holders = entries.flatMap(({ name, bytes, explanation }): readonly Holder[] => {
    if (name === 'other_processes') return byProcess(processes, bytes, holder)
    if (name === 'driver_reserve') return [holder(name, 'driver', explanation, bytes, 'fill-reserve')]
    if (name === 'free') return [holder(name, 'free', explanation, bytes, null)]
    return [holder(name, isOfHost ? 'rest of the machine' : 'not attributed', explanation, bytes, 'fill-7')]
  })
  return { totalBytes: total, usedRatio: sample.memoryUsedBytes / total, holders }
}

type MakeHolder = (key: string, label: string, title: string, bytes: number, fill: string | null, pid?: number | null) => Holder

/** In the order in which they came, so that colors stay; the smallest are summed when there are many. */
function byProcess(processes: readonly ProcessView[], sum: number, holder: MakeHolder): readonly Holder[] {
  const known = processes.filter(({ memoryUsedBytes }) => (memoryUsedBytes ?? 0) > 0)
  const shown = new Set(
    [...known].sort((a, b) => bytesOf(b) - bytesOf(a)).slice(0, known.length > MOST_SHOWN ? MOST_SHOWN - 1 : MOST_SHOWN),
  )
  const ordered = [...known].sort((a, b) => (a.info?.startedAt ?? 0) - (b.info?.startedAt ?? 0) || a.pid - b.pid)
  let left = sum
  const take = (wanted: number) => {
    const given = Math.min(left, Math.round(wanted))
    left -= given
    return given
  }
  const holders: Holder[] = []
  for (const [index, process] of ordered.entries()) {
    if (!shown.has(process)) continue
    const user = process.info?.user ?? 'unknown'
    const name = process.info?.name ?? 'process'
    const fill = `fill-${(index % COLOURS) + 1}`
    holders.push(holder(String(process.pid), user, `${user}, ${name} (PID ${process.pid})`, take(bytesOf(process)), fill, process.pid))
  }
  const others = ordered.length - holders.length
  if (others > 0) holders.push(holder('more', `${others} more`, `${others} smaller processes`, take(left), 'fill-8'))
  return holders
}

function bytesOf({ memoryUsedBytes }: ProcessView): number {
  return memoryUsedBytes ?? 0
}
