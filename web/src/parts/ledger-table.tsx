/** Where memory is or was: a bar, and a line for each part with what it is. */
import '../style/memory.css'
import type { ComponentChildren } from 'preact'
import { Meter, ScrollBox } from './parts.tsx'

export interface LedgerLine {
  readonly name: string
  readonly label: string
  readonly fill: string
  readonly size: string
  readonly share: string
  /** Of the whole; the bar shows it. */
  readonly ratio: number
  readonly explanation: ComponentChildren
}

export interface LedgerTableProps {
  /** What the bar is, and all of it in words, for those who do not see it. */
  readonly label: string
  readonly words: string
  readonly lines: readonly LedgerLine[]
  readonly total: string
  readonly note?: ComponentChildren
}

export function LedgerTable({ label, words, lines, total, note }: LedgerTableProps) {
  return (
    <>
      <Meter
        label={label}
        value={words}
        parts={lines
          .filter(({ name, ratio }) => name !== 'free' && ratio > 0)
          .map((line) => ({ ratio: line.ratio, fill: line.fill, label: `${line.label}: ${line.size}` }))}
      />
      <ScrollBox label="Ledger">
        <table class="ledger-table">
          <thead>
            <tr>
              <th>Part</th>
              <th class="number">Bytes</th>
              <th class="number">Share</th>
              <th>What it is</th>
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => (
              <tr key={line.name}>
                <td class="nowrap">
                  <i class={`swatch ${line.fill}`} /> {line.label}
                </td>
                <td class="number">{line.size}</td>
                <td class="number faint">{line.share}</td>
                <td class="small faint">{line.explanation}</td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <td>All of it</td>
              <td class="number">{total}</td>
              <td class="number">100%</td>
              <td class="small faint">{note}</td>
            </tr>
          </tfoot>
        </table>
      </ScrollBox>
    </>
  )
}
