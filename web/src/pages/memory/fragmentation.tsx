/** How the allocators of runs on this GPU use what they reserved. Cache that can be given back is not fragmentation. */
import type { ReadonlySignal } from '@preact/signals'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { present } from '../../live/present.ts'
import { Badge, Empty, Meter, Panel } from '../../parts/parts.tsx'
import { formatAge, formatBytes, formatPercent, formatShare } from '../../words.ts'
import { type Allocator, isFresh, judge, reserveOf } from './allocators.ts'
import { PARTS } from './ledger-now.tsx'

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
          Only the program itself knows how its memory lies: add the callback of the gpuwarden SDK to the training, two lines.
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
        <Badge tone={tone}>{reserve?.fragmentedRatio == null ? 'not told' : `${formatPercent(reserve.fragmentedRatio)} fragmented`}</Badge>
      </div>
      {reserve && (
        <>
          <Meter
            label={`Reserve of ${run?.name ?? step.run}`}
            value={reserve.parts.map(({ name, bytes }) => `${PARTS[name].label} ${formatBytes(bytes)}`).join(', ')}
            parts={reserve.parts.map(({ name, bytes }) => ({
              ratio: bytes / reserve.reservedBytes,
              fill: PARTS[name].fill,
              label: `${PARTS[name].label}: ${formatBytes(bytes)}`,
            }))}
          />
          <table class="reserve-table small">
            <tbody>
              {reserve.parts.map(({ name, bytes, explanation }) => (
                <tr key={name} title={explanation}>
                  <th scope="row">
                    <i class={`swatch ${PARTS[name].fill}`} /> {PARTS[name].label}
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
        {step.memoryPeakAllocatedBytes !== null && ` · tensors at most ${formatBytes(step.memoryPeakAllocatedBytes)}`}
        {step.allocRetries !== null && step.allocRetries > 0 && ` · had to empty its cache ${step.allocRetries} times`}
        {isGuess && ' · taken to be on this GPU because what it reserved fits'}
      </p>
    </li>
  )
}
