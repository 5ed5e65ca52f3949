import type { ReadonlySignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { LedgerEntry, LedgerName } from '../../../../src/core/memory/ledger.ts'
import { ledgerLabel } from '../../../../src/core/memory/oom-report.ts'
import type { ProcessView } from '../../../../src/core/model.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { present } from '../../live/present.ts'
import { LedgerTable } from '../../parts/ledger-table.tsx'
import { Empty, Panel } from '../../parts/parts.tsx'
import { formatBytes, formatShare } from '../../words.ts'
import { type Allocator, ledgerNow } from './allocators.ts'

/** Classes of the colors, in the order in which the parts are shown. */
export const FILLS: Readonly<Record<LedgerName, string>> = {
  torch_allocated: 'fill-1',
  torch_rounding: 'fill-5',
  torch_pending_free: 'fill-6',
  torch_inactive_split: 'fill-8',
  torch_releasable_cache: 'fill-2',
  non_torch: 'fill-4',
  other_processes: 'fill-3',
  other: 'fill-7',
  driver_reserve: 'fill-reserved',
  free: 'fill-none',
}

const ORDER = Object.keys(FILLS) as readonly LedgerName[]
const MOST_NAMES = 4

export function LedgerPanel({ cell, allocators }: { readonly cell: GpuCell; readonly allocators: ReadonlySignal<readonly Allocator[]> }) {
  const sample = cell.sample.value
  const info = cell.info.value
  const ledger = sample && ledgerNow(sample, info.memoryTotalBytes, allocators.value, present())
  const rows = useKept(ledger?.entries ?? [])
  if (!ledger || sample.memoryUsedBytes === null)
    return (
      <Panel title="Where it is now">
        <Empty title={sample ? 'This GPU does not report how much memory is in use' : 'No readings yet'}>
          {info.unavailable.memoryUsedBytes ?? 'The ledger appears with the first readings.'}
        </Empty>
      </Panel>
    )
  const isLive = cell.freshness.value.kind === 'live'
  const share = (bytes: number) => bytes / ledger.totalBytes
  return (
    <Panel title="Where it is now" aside={<span class="small faint">{isLive ? '' : 'not current'}</span>}>
      <div class={isLive ? 'ledger' : 'ledger stale'}>
        <LedgerTable
          label={`Memory of GPU ${info.label}`}
          words={ledger.entries.map(({ name, bytes }) => `${ledgerLabel(name)} ${formatBytes(bytes)}`).join(', ')}
          lines={rows.map(({ name, bytes, explanation }) => ({
            name,
            label: ledgerLabel(name),
            fill: FILLS[name],
            size: formatBytes(bytes),
            share: formatShare(bytes, ledger.totalBytes),
            ratio: share(bytes),
            explanation: name === 'other_processes' ? <Holders processes={cell.processes.value} /> : explanation,
          }))}
          total={formatBytes(ledger.totalBytes)}
          note={ledger.adjusted && 'Figures from different moments did not add up exactly; one part was reduced so that the sum is right.'}
        />
      </div>
    </Panel>
  )
}

/** A part that was there once keeps its line, with nothing in it, so that the page does not move up and down. */
function useKept(entries: readonly LedgerEntry[]): readonly LedgerEntry[] {
  const kept = useRef(new Map<LedgerName, LedgerEntry>())
  const current = new Map(entries.map((entry) => [entry.name, entry]))
  for (const entry of entries) kept.current.set(entry.name, entry)
  return ORDER.flatMap((name) => {
    const known = kept.current.get(name)
    return known ? [current.get(name) ?? { ...known, bytes: 0 }] : []
  })
}

function Holders({ processes }: { readonly processes: readonly ProcessView[] }) {
  const list = [...processes].sort((a, b) => (b.memoryUsedBytes ?? 0) - (a.memoryUsedBytes ?? 0))
  const said = list.slice(0, MOST_NAMES).map(({ pid, info }) => `${info?.name ?? 'process'} ${pid} (${info?.user ?? 'unknown user'})`)
  const rest = list.length - said.length
  return <span>Held by processes that report no allocator figures: {`${said.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}.`}</span>
}
