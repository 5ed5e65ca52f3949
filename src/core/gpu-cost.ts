/** What GPU time costs: the user's price, or a rough price by the name of the card. */
import { listPrice } from './gpu-price.ts'

export interface Cost {
  readonly amount: number
  readonly pricePerGpuHour: number
  /** From the list of core/gpu-price.ts, good for an order of magnitude. */
  readonly isEstimate: boolean
}

/** null: the price of some card is unknown. */
export function costOf(gpus: readonly { name: string | null; hours: number }[], pricePerGpuHour: number | null): Cost | null {
  const hours = gpus.reduce((sum, gpu) => sum + gpu.hours, 0)
  if (gpus.length === 0) return null
  if (pricePerGpuHour !== null) return { amount: hours * pricePerGpuHour, pricePerGpuHour, isEstimate: false }
  let amount = 0
  for (const { name, hours: own } of gpus) {
    const price = listPrice(name)
    if (price === null) return null
    amount += price * own
  }
  return { amount, pricePerGpuHour: hours > 0 ? amount / hours : (listPrice(gpus[0]?.name ?? null) ?? 0), isEstimate: true }
}
