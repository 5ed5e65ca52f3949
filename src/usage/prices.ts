/** What an hour of a card costs: as set for the model, as set for all, or as listed. */
import { listPrice } from '../core/gpu-price.ts'

export interface Price {
  readonly perHour: number
  /** From the list, good for an order of magnitude. */
  readonly isEstimate: boolean
}

export type PriceOf = (card: string | null) => Price | null

export interface PriceSettings {
  readonly 'usage.price_per_hour': number | null
  readonly 'usage.prices': Readonly<Record<string, number>>
}

/** The longest part of a name that matches counts: `RTX 4090 D` before `RTX 4090`. */
export function priceList(settings: PriceSettings): PriceOf {
  const own = Object.entries(settings['usage.prices']).sort(([a], [b]) => b.length - a.length)
  const all = settings['usage.price_per_hour']
  return (card) => {
    const set = own.find(([part]) => card?.toLowerCase().includes(part.toLowerCase()))?.[1] ?? all
    if (set !== null) return { perHour: set, isEstimate: false }
    const listed = listPrice(card)
    return listed === null ? null : { perHour: listed, isEstimate: true }
  }
}
