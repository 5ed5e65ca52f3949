/**
 * What each user used since counting began: counters that never fall. They are added up in whole thousandths, as the lines of the ledger have
 * them, because a counter that is lower by a rounding error after a restart counts twice in Prometheus.
 */
import { NOBODY, type UsageRow } from './row.ts'

const MOST_USERS = 200
const OTHERS = 'others'

export interface UserTotals {
  readonly user: string
  readonly simulated: boolean
  readonly gpuSeconds: number
  readonly busySeconds: number
  readonly idleSeconds: number
  readonly energyJoules: number
}

/** In thousandths. */
export interface SavedTotals {
  readonly user: string
  readonly simulated: boolean
  gpu: number
  busy: number
  idle: number
  energy: number
}

export class Totals {
  readonly #users = new Map<string, SavedTotals>()

  constructor(saved: readonly SavedTotals[] = []) {
    for (const one of saved) this.#users.set(nameOf(one), { ...one })
  }

  add(rows: Iterable<UsageRow>): void {
    for (const row of rows) {
      if (row.user === NOBODY) continue
      const total = this.#of(row)
      total.gpu += Math.round(row.gpuSeconds * 1000)
      total.busy += Math.round(row.busySeconds * 1000)
      total.idle += Math.round(row.idleSeconds * 1000)
      total.energy += Math.round(row.energyJoules * 1000)
    }
  }

  saved(): readonly SavedTotals[] {
    return [...this.#users.values()]
  }

  list(): readonly UserTotals[] {
    return Array.from(this.#users.values(), ({ user, simulated, gpu, busy, idle, energy }) => ({
      ...{ user, simulated, gpuSeconds: gpu / 1000, busySeconds: busy / 1000, idleSeconds: idle / 1000, energyJoules: energy / 1000 },
    }))
  }

  /** Users beyond the bound are counted together: who has a counter keeps it. */
  #of({ user, simulated }: Pick<UsageRow, 'user' | 'simulated'>): SavedTotals {
    const known = this.#users.get(nameOf({ user, simulated }))
    if (known) return known
    if (this.#users.size >= MOST_USERS && user !== OTHERS) return this.#of({ user: OTHERS, simulated })
    const total = { user, simulated, gpu: 0, busy: 0, idle: 0, energy: 0 }
    this.#users.set(nameOf(total), total)
    return total
  }
}

function nameOf({ user, simulated }: { readonly user: string; readonly simulated: boolean }): string {
  return `${simulated ? 'simulated' : 'real'} ${user}`
}
