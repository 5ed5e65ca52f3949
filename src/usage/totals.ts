/** What each user used since counting began: counters that never fall. */
import { NOBODY, type UsageRow } from './row.ts'

const MOST_USERS = 200
const OTHERS = 'others'

export interface UserTotals {
  readonly user: string
  readonly simulated: boolean
  gpuSeconds: number
  busySeconds: number
  idleSeconds: number
  energyJoules: number
}

export class Totals {
  readonly #users = new Map<string, UserTotals>()

  constructor(saved: readonly UserTotals[] = []) {
    for (const one of saved) this.#users.set(nameOf(one), { ...one })
  }

  add(rows: Iterable<UsageRow>): void {
    for (const row of rows) {
      if (row.user === NOBODY) continue
      const total = this.#of(row)
      total.gpuSeconds += row.gpuSeconds
      total.busySeconds += row.busySeconds
      total.idleSeconds += row.idleSeconds
      total.energyJoules += row.energyJoules
    }
  }

  list(): readonly UserTotals[] {
    return [...this.#users.values()].map((one) => ({ ...one }))
  }

  /** Users beyond the bound are counted together: who has a counter keeps it. */
  #of({ user, simulated }: Pick<UsageRow, 'user' | 'simulated'>): UserTotals {
    const known = this.#users.get(nameOf({ user, simulated }))
    if (known) return known
    if (this.#users.size >= MOST_USERS && user !== OTHERS) return this.#of({ user: OTHERS, simulated })
    const total = { user, simulated, gpuSeconds: 0, busySeconds: 0, idleSeconds: 0, energyJoules: 0 }
    this.#users.set(nameOf(total), total)
    return total
  }
}

function nameOf({ user, simulated }: { readonly user: string; readonly simulated: boolean }): string {
  return `${simulated ? 'simulated' : 'real'} ${user}`
}
