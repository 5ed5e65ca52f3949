/** The colour of a part of a device's memory: the same in every picture of a report. */

/** Positions in the palette; the reserve and what is free are not of the program, and stay pale. */
const COLORS: Readonly<Record<string, string>> = {
  torch_allocated: '--s0',
  torch_rounding: '--s4',
  torch_pending_free: '--s5',
  torch_inactive_split: '--s7',
  torch_releasable_cache: '--s1',
  non_torch: '--s3',
  outside_torch: '--s6',
  other_processes: '--s2',
  other: '--s6',
  driver_reserve: '--axis',
  free: '--grid',
}

/** From what the program holds to what nobody does. */
export const LEDGER_ORDER: readonly string[] = Object.keys(COLORS)

/** A variable of the page's style. */
export function ledgerColor(name: string): string {
  return Object.hasOwn(COLORS, name) ? (COLORS[name] ?? '--s6') : '--s6'
}
