/** Who holds a GPU's memory over time: layers that add up to what is in use, and never to more. */
import type { ProcessHistoryAnswer } from '../../../../src/core/kinds.ts'
import type { Reading } from '../../../../src/core/model.ts'

export interface Layer {
  readonly label: string
  readonly values: readonly Reading[]
}

const MOST_PROCESSES = 4
/** A process's figure counts for this many of its own steps. */
const HOLD_STEPS = 1.6

export interface LedgerColumns {
  readonly at: readonly number[]
  readonly used: readonly Reading[]
  readonly reserved: readonly Reading[]
}

/** The driver's reserve, the largest processes, and whatever else is in use; unknown where the device did not say what is in use. */
export function ledgerLayers({ at, used, reserved }: LedgerColumns, history: ProcessHistoryAnswer | null): readonly Layer[] {
  const largest = [...(history?.processes ?? [])]
    .map((process) => ({ ...process, peak: Math.max(0, ...process.memoryUsedBytes.map((bytes) => bytes ?? 0)) }))
    .filter(({ peak }) => peak > 0)
    .sort((a, b) => b.peak - a.peak)
    .slice(0, MOST_PROCESSES)
  const held = largest.map((process) => onto({ at, used }, history?.at ?? [], process.memoryUsedBytes, (history?.stepMs ?? 0) * HOLD_STEPS))
  const layers: Reading[][] = largest.map(() => [])
  const rest: Reading[] = []
  at.forEach((_, index) => {
    const total = used[index] ?? null
    let left = total ?? 0
    held.forEach((column, position) => {
      const own = Math.min(left, column[index] ?? 0)
      left -= own
      layers[position]?.push(total === null ? null : own)
    })
    rest.push(total === null ? null : left)
  })
  const named = largest.map(({ pid, user, name }, position) => ({
    label: `${name ?? 'process'} ${pid}${user === null ? '' : ` (${user})`}`,
    values: layers[position] ?? [],
  }))
  const reserve = reserved.some((bytes) => bytes !== null)
    ? [{ label: 'driver reserve', values: reserved.map((bytes, index) => (used[index] === null ? null : (bytes ?? 0))) }]
    : []
  return [...reserve, ...named, { label: named.length === 0 ? 'in use' : 'others', values: rest }]
}

/** A process's figures on the grid of the samples. Between two of them it is taken to have kept its share of what is in use. */
function onto(
  { at, used }: Pick<LedgerColumns, 'at' | 'used'>,
  from: readonly number[],
  values: readonly Reading[],
  holdMs: number,
): Reading[] {
  let index = -1
  let whole: Reading = null
  return at.map((moment, position) => {
    while (index + 1 < from.length && (from[index + 1] ?? 0) <= moment) {
      index++
      whole = used[position] ?? null
    }
    const since = from[index]
    const own = values[index] ?? null
    if (since === undefined || own === null || moment - since > holdMs) return null
    return whole ? (own / whole) * (used[position] ?? 0) : own
  })
}
