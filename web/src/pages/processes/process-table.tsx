/** The table: a click on a head sorts, a click on a PID shows all that is known of the process. */
import { useRef } from 'preact/hooks'
import type { Reading } from '../../../../src/core/model.ts'
import { present } from '../../live/present.ts'
import { setQuery } from '../../location.ts'
import { Badge } from '../../parts/parts.tsx'
import { placeHash } from '../../place.ts'
import { formatAge, formatBytes, formatPercent, NOT_AVAILABLE } from '../../words.ts'
import { ProcessDetails } from './process-details.tsx'
import { COLUMNS, type Column, keepOrder, nextOrder, type Order, orderText, type ProcessRow, USUAL_ORDER } from './process-rows.ts'

interface TableProps {
  readonly rows: readonly ProcessRow[]
  readonly order: Order
  readonly openKey: string
  /** null: nobody may end processes from here. */
  readonly onKill: ((row: ProcessRow) => void) | null
}

export function ProcessTable({ rows, order, openKey, onKill }: TableProps) {
  const isHeld = useRef(false)
  const last = useRef<{ order: string; keys: readonly string[] }>({ order: '', keys: [] })
  // Rows do not change places under the pointer: one would open, or end, the wrong process.
  const shown = isHeld.current && last.current.order === orderText(order) ? keepOrder(rows, last.current.keys) : rows
  last.current = { order: orderText(order), keys: shown.map(({ key }) => key) }
  const width = COLUMNS.length + (onKill ? 1 : 0)
  return (
    <section
      class="panel flush scroll-x process-panel"
      aria-label="Processes on GPUs"
      onPointerEnter={() => {
        isHeld.current = true
      }}
      onPointerLeave={() => {
        isHeld.current = false
      }}
      // A row that moves loses the focus of who goes through it by keyboard.
      onFocusIn={(event) => {
        if (event.target instanceof Element && event.target.matches('tbody :focus-visible')) isHeld.current = true
      }}
      onFocusOut={() => {
        isHeld.current = false
      }}
    >
      <table class="process-table">
        <thead>
          <tr>
            {COLUMNS.map((column) => (
              <Head key={column.name} column={column} order={order} />
            ))}
            {onKill && (
              <th>
                <span class="visually-hidden">End</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <Row key={row.key} row={row} isOpen={row.key === openKey} width={width} onKill={onKill} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Head({ column, order }: { readonly column: Column; readonly order: Order }) {
  const isCurrent = order.column === column.name
  const choose = () => {
    const next = orderText(nextOrder(order, column))
    setQuery({ sort: next === orderText(USUAL_ORDER) ? null : next })
  }
  return (
    <th class={column.isNumber ? 'number' : ''} aria-sort={isCurrent ? (order.isDescending ? 'descending' : 'ascending') : undefined}>
      <button type="button" onClick={choose}>
        {column.label}
        <span class="sort-sign" aria-hidden="true">
          {isCurrent ? (order.isDescending ? '↓' : '↑') : ''}
        </span>
      </button>
    </th>
  )
}

interface RowProps {
  readonly row: ProcessRow
  readonly isOpen: boolean
  readonly width: number
  readonly onKill: ((row: ProcessRow) => void) | null
}

function Row({ row, isOpen, width, onKill }: RowProps) {
  const { key, process, gpuLabel, isCurrent, marks, command, place } = row
  const { info } = process
  const detailsId = `process-${key.replace(/\W/g, '-')}`
  return (
    <>
      <tr class={`${isCurrent ? '' : 'not-current'} ${isOpen ? 'open' : ''}`}>
        <td class="nowrap">
          <button
            type="button"
            class="disclosure mono"
            aria-expanded={isOpen}
            aria-controls={isOpen ? detailsId : undefined}
            title={isOpen ? 'Hide the details' : 'Show the details'}
            onClick={() => setQuery({ open: isOpen ? null : key })}
          >
            <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span>
            {process.pid}
          </button>
        </td>
        <td class="process-user cut" title={info?.user ?? 'Owner not known'}>
          {info?.user ?? <span class="faint">unknown</span>}
        </td>
        <td>
          <a href={placeHash(['gpu', gpuLabel])}>{gpuLabel}</a>
        </td>
        <td class="nowrap">
          {marks.map(({ label, tone, words }) => (
            <Badge key={label} tone={tone} title={words}>
              {label}
            </Badge>
          ))}
        </td>
        <td>{process.type}</td>
        <td class="number">{formatBytes(process.memoryUsedBytes)}</td>
        <td class="number">{formatPercent(process.smRatio)}</td>
        <td class="number">{formatPercent(info?.cpuRatio ?? null)}</td>
        <td class="number">{formatBytes(info?.residentBytes ?? null)}</td>
        <td class="nowrap">
          <Since at={info?.startedAt ?? null} />
        </td>
        <td class="process-place cut" title={info?.container ?? info?.pod ?? place ?? ''}>
          {place ?? <span class="faint">–</span>}
        </td>
        <td class="process-command mono cut" title={command ?? ''}>
          {command ?? NOT_AVAILABLE}
        </td>
        {onKill && (
          <td>
            <button
              type="button"
              class="danger"
              disabled={info?.startedAt == null}
              title={
                info?.startedAt == null
                  ? 'The identity of this process is not known, so it cannot be ended from here'
                  : `End process ${process.pid}`
              }
              onClick={() => onKill(row)}
            >
              End…
            </button>
          </td>
        )}
      </tr>
      {isOpen && (
        <tr class="process-open" id={detailsId}>
          <td colSpan={width}>
            <ProcessDetails row={row} />
          </td>
        </tr>
      )}
    </>
  )
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const DAY_AND_TIME = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})

/** The moment, and how long ago it was. */
function Since({ at }: { readonly at: Reading }) {
  if (at === null) return <span class="faint">{NOT_AVAILABLE}</span>
  const now = present()
  const isToday = new Date(at).toDateString() === new Date(now).toDateString()
  return (
    <time dateTime={new Date(at).toISOString()} title={new Date(at).toLocaleString()}>
      {(isToday ? TIME : DAY_AND_TIME).format(at)} <span class="faint">{formatAge(now - at)}</span>
    </time>
  )
}
