import '../style/memory.css'
import type { GpuField } from '../../../src/core/model.ts'
import { useHistory } from '../history.ts'
import type { GpuCell } from '../live/gpu-cell.ts'
import { gpuCell, gpus } from '../live/store.ts'
import { place, setQuery } from '../location.ts'
import { GpuChoice, GpuNotice } from '../parts/one-gpu.tsx'
import { Badge, Empty, Panel } from '../parts/parts.tsx'
import { RangePicker } from '../parts/range-picker.tsx'
import { currentRange } from '../time-range.ts'
import { ForecastPanel } from './memory/forecast.tsx'
import { FragmentationPanel } from './memory/fragmentation.tsx'
import { LeakPanel } from './memory/leaks.tsx'
import { LedgerPanel } from './memory/ledger-now.tsx'
import { ProcessMemoryPanel } from './memory/process-memory.tsx'
import { useAllocators } from './memory/use-allocators.ts'

const FIELDS: readonly GpuField[] = ['memoryUsedBytes']

export function MemoryPage() {
  const name = place.value.query.gpu
  const cell = name === undefined ? gpus.value[0] : gpuCell(name)
  if (cell) return <MemoryOf key={cell.id} cell={cell} />
  return (
    <>
      <div class="page-head">
        <h1 class="grow">Memory</h1>
        <a class="button" href="#/snapshots">
          Snapshots
        </a>
      </div>
      <Panel>
        <Empty title={gpus.value.length === 0 ? 'No GPU is known yet' : `There is no GPU ${name}`}>
          {gpus.value.length === 0 ? 'It appears with the first reading.' : <GpuLinks />}
        </Empty>
      </Panel>
    </>
  )
}

function GpuLinks() {
  return (
    <>
      There are:{' '}
      {gpus.value.map(({ id, info }) => (
        <a key={id} class="spaced" href={`#/memory?gpu=${encodeURIComponent(info.value.label)}`}>
          GPU {info.value.label}
        </a>
      ))}
    </>
  )
}

function MemoryOf({ cell }: { readonly cell: GpuCell }) {
  const info = cell.info.value
  const range = currentRange()
  const track = useHistory(cell, FIELDS, range)
  const allocators = useAllocators(cell)
  return (
    <>
      <div class="page-head">
        <h1 class="grow">
          Memory <span class="faint">GPU {info.label}</span> {info.provenance === 'simulated' && <Badge tone="simulated">SIMULATED</Badge>}
        </h1>
        <a class="button" href="#/snapshots">
          Snapshots
        </a>
        <GpuChoice current={info.label} onChoose={(gpu) => setQuery({ gpu })} />
        <RangePicker />
      </div>
      <GpuNotice cell={cell} />
      <ForecastPanel cell={cell} range={range} track={track} allocators={allocators} />
      <LedgerPanel cell={cell} allocators={allocators} />
      <ProcessMemoryPanel cell={cell} range={range} track={track} />
      <div class="grid columns-2">
        <LeakPanel cell={cell} />
        <FragmentationPanel cell={cell} allocators={allocators} />
      </div>
    </>
  )
}
