/** What changed from one snapshot to another, as a table with bars. */
import type { DiffPicture, DiffRow } from '../../../src/core/memory/snapshot-picture.ts'
import { ScrollBox } from '../parts/parts.tsx'
import { formatBytes, formatCount } from '../words.ts'

const INNER_FRAMES = 3

export function DiffTable({ diff }: { readonly diff: DiffPicture }) {
  const { rows, beforeBytes, afterBytes, warnings, leftOut, categories, at } = diff
  const largest = rows.reduce((most, { deltaBytes }) => Math.max(most, Math.abs(deltaBytes)), 1)
  const changed = categories.filter((one) => one.beforeBytes !== one.afterBytes)
  return (
    <div class="snapshot-diff">
      <p>
        At {at}: {formatBytes(beforeBytes)} before, {formatBytes(afterBytes)} after: <b>{signed(afterBytes - beforeBytes)}</b>
        {changed.length > 0 && (
          <span class="faint">
            {' '}
            ({changed.map((one) => `${one.name.replace('_', ' ')} ${signed(one.afterBytes - one.beforeBytes)}`).join(', ')})
          </span>
        )}
      </p>
      {warnings.map((warning) => (
        <p key={warning} class="small tone-warning">
          Careful: {warning}.
        </p>
      ))}
      {rows.length === 0 ? (
        <p class="faint">Nothing differs.</p>
      ) : (
        <ScrollBox label="Changes by stack">
          <table class="diff-table">
            <thead>
              <tr>
                <th>change</th>
                <th>
                  <span class="visually-hidden">less or more</span>
                </th>
                <th class="number">before</th>
                <th class="number">after</th>
                <th>made at</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row key={row.stack.join('\n')} row={row} largest={largest} />
              ))}
            </tbody>
          </table>
        </ScrollBox>
      )}
      {leftOut.rows > 0 && (
        <p class="small faint">
          {formatCount(leftOut.rows, 'smaller change')} not shown, {signed(leftOut.bytes)} together.
        </p>
      )}
    </div>
  )
}

function Row({ row, largest }: { readonly row: DiffRow; readonly largest: number }) {
  const { change, line, category, stack, before, after, deltaBytes } = row
  const inner = stack.slice(-INNER_FRAMES).filter((frame) => !line.includes(frame))
  const share = (Math.abs(deltaBytes) / largest) * 50
  return (
    <tr>
      <td class="nowrap">
        <b>{signed(deltaBytes)}</b> <span class="faint">{change}</span>
      </td>
      <td>
        <div class="diff-bar" aria-hidden="true">
          <i
            class={deltaBytes > 0 ? 'more' : 'less'}
            style={{ width: `${Math.max(0.7, share)}%`, left: `${deltaBytes > 0 ? 50 : 50 - Math.max(0.7, share)}%` }}
          />
        </div>
      </td>
      <td class="number">{amount(before)}</td>
      <td class="number">{amount(after)}</td>
      <td class="diff-line">
        {line} <span class="tiny faint">{category.replace('_', ' ')}</span>
        {inner.length > 0 && (
          <details class="tiny faint">
            <summary>stack</summary>
            <ol class="frames">
              {stack.map((frame, position) => (
                <li key={position}>{frame}</li>
              ))}
            </ol>
          </details>
        )}
      </td>
    </tr>
  )
}

function amount({ bytes, blocks }: DiffRow['before']): string {
  return blocks === 0 ? '–' : `${formatBytes(bytes)} (${blocks})`
}

function signed(bytes: number): string {
  return `${bytes < 0 ? '-' : '+'}${formatBytes(Math.abs(bytes))}`
}
