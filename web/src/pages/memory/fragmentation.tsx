/** How the allocators of runs on this GPU use what they reserved. Cache that can be given back is not fragmentation. */

import type { ReadonlySignal } from '@preact/signals'
import { ledgerLabel } from '../../../../src/core/memory/oom-report.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { present } from '../../live/present.ts'
import { Badge, Empty, Meter, Panel } from '../../parts/parts.tsx'
import { formatAge, formatBytes, formatPercent, formatShare } from '../../words.ts'
import { type Allocator, isFresh, judge, reserveOf } from './allocators.ts'
import { FILLS } from './ledger-now.tsx'

export function FragmentationPanel({
  cell,
  allocators,
}: {
  readonly cell: GpuCell
  readonly allocators: ReadonlySignal<readonly Allocator[]>
}) {
  const list = allocators.value
  return (
    <Panel title="Fragmentation">
      {list.length === 0 ? (
        <Empty title={`No run on GPU ${cell.info.value.label} reports its allocator`}>
          Only the program knows its allocator: add the callback of the gpuwarden SDK to the training code, two lines.
        </Empty>
      ) : (
        <ul class="list">
          {list.map((allocator) => (
            <OneAllocator key={`${allocator.step.rank}@${allocator.step.run}`} allocator={allocator} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function OneAllocator({ allocator: { step, run, isGuess } }: { readonly allocator: Allocator }) {
  const reserve = reserveOf(step)
  const { words, tone } = judge(reserve?.fragmentedRatio ?? null)
  const at = present()
  const isCurrent = isFresh(step, at)
  return (
    <li class={`allocator ${isCurrent ? '' : 'stale'}`}>
      <div class="leak-head">
        <strong class="cut" title={step.run}>
          <a href={`#/training/${encodeURIComponent(step.run)}`}>{run?.name ?? step.run}</a>
          {step.rank > 0 ? `, rank ${step.rank}` : ''}
        </strong>
        <span class="grow" />
        <Badge tone={tone}>
          {reserve?.fragmentedRatio == null ? 'not reported' : `${formatPercent(reserve.fragmentedRatio)} fragmented`}
        </Badge>
      </div>
      {reserve && (
        <>
          <Meter
            label={`Memory reserved by ${run?.name ?? step.run}`}
            value={reserve.parts.map(({ name, bytes }) => `${ledgerLabel(name)} ${formatBytes(bytes)}`).join(', ')}
            parts={reserve.parts.map(({ name, bytes }) => ({
              ratio: bytes / reserve.reservedBytes,
              fill: FILLS[name],
              label: `${ledgerLabel(name)}: ${formatBytes(bytes)}`,
            }))}
          />
          <table class="reserve-table small">
            <tbody>
              {reserve.parts.map(({ name, bytes, explanation }) => (
                <tr key={name} title={explanation}>
                  <th scope="row">
                    <i class={`swatch ${FILLS[name]}`} /> {ledgerLabel(name)}
                  </th>
                  <td class="number">{formatBytes(bytes)}</td>
                  <td class="number faint">{formatShare(bytes, reserve.reservedBytes)}</td>
                </tr>
              ))}
              <tr>
                <th scope="row">Reserved</th>
                <td class="number">{formatBytes(reserve.reservedBytes)}</td>
                <td class="number faint">100%</td>
              </tr>
            </tbody>
          </table>
        </>
      )}
      <p class="small breakable">{words}</p>
      <p class="tiny faint">
        Step {step.step}, {formatAge(at - step.at)} ago
        {step.memoryPeakAllocatedBytes !== null && ` · peak allocated ${formatBytes(step.memoryPeakAllocatedBytes)}`}
        {step.allocRetries !== null && step.allocRetries > 0 && ` · ${step.allocRetries} allocation retries`}
        {isGuess && ' · assumed to be on this GPU: its reserved memory fits'}
      </p>
    </li>
  )
}
