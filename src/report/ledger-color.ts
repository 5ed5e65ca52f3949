/** The color of each part of GPU memory: the same in every chart of a report. */
/** Positions in the palette. */
const COLORS: Readonly<Record<string, number | 'pale'>> = {
  torch_allocated: 0,
  torch_rounding: 4,
  torch_pending_free: 5,
  torch_inactive_split: 7,
  torch_releasable_cache: 1,
  non_torch: 3,
  outside_torch: 6,
  other_processes: 2,
  other: 6,
  driver_reserve: 'pale',
}

export const LEDGER_ORDER: readonly string[] = Object.keys(COLORS)

export function ledgerColor(name: string): number | 'pale' {
  return Object.hasOwn(COLORS, name) ? (COLORS[name] ?? 6) : 6
}

/** CSS class. */
export function ledgerClass(name: string): string {
  const color = ledgerColor(name)
  return name === 'free' ? 'free' : `series-${color === 'pale' ? color : color + 1}`
}
