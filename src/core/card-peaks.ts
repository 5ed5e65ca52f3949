/** What cards can compute at most, dense, by data type: the denominator of the MFU. Needs neither Node.js nor a package. */

/** As tensor cores take them; `float32` is without TF32. */
export const COMPUTE_TYPES = ['float8', 'bfloat16', 'float16', 'tf32', 'float32'] as const
export type ComputeType = (typeof COMPUTE_TYPES)[number]

type Peaks = Partial<Record<ComputeType, number>>

/** In 10¹² operations a second, from the makers' data sheets, without sparsity; half precision with 32-bit accumulation. */
const half = (tera: number, more: Peaks = {}): Peaks => ({ bfloat16: tera, float16: tera, ...more })

/** The first match counts. */
const CARDS: readonly (readonly [name: RegExp, peaks: Peaks])[] = [
  [/\bGB[23]00/, half(2500, { float8: 5000, tf32: 1250, float32: 80 })],
  [/\bB[23]00/, half(2250, { float8: 4500, tf32: 1125, float32: 75 })],
  [/\bH[12]00 NVL/, half(835.5, { float8: 1671, tf32: 417.5, float32: 60 })],
  [/\bH[18]00 PCIe/, half(756, { float8: 1513, tf32: 378, float32: 51 })],
  [/\bG?H[128]00/, half(989.5, { float8: 1979, tf32: 494.5, float32: 67 })],
  [/\bH20\b/, half(148, { float8: 296, tf32: 74, float32: 44 })],
  [/\bA[18]00\b/, half(312, { tf32: 156, float32: 19.5 })],
  [/\bA30\b/, half(165, { tf32: 82, float32: 10.3 })],
  [/\bL40S/, half(362, { float8: 733, tf32: 183, float32: 91.6 })],
  [/\bL40\b/, half(181, { float8: 362, tf32: 90.5, float32: 90.5 })],
  [/\bL4\b/, half(121, { float8: 242.5, tf32: 60, float32: 30.3 })],
  [/\bA10G/, half(70, { tf32: 35, float32: 31.5 })],
  [/\bA10\b/, half(125, { tf32: 62.5, float32: 31.2 })],
  [/\bA40\b/, half(149.7, { tf32: 74.8, float32: 37.4 })],
  [/\bV100S/, { float16: 130, float32: 16.4 }],
  [/\bV100-PCIE/i, { float16: 112, float32: 14 }],
  [/\bV100/, { float16: 125, float32: 15.7 }],
  [/\bT4\b/, { float16: 65, float32: 8.1 }],
  [/RTX PRO 6000/, half(503.8, { float32: 125 })],
  [/RTX 6000 Ada/, half(364.2, { float8: 728.5, tf32: 182.1, float32: 91.1 })],
  [/RTX A6000/, half(154.8, { tf32: 77.4, float32: 38.7 })],
  [/RTX 5090(?! D| Laptop)/, half(209.5, { float8: 419, tf32: 104.8, float32: 104.8 })],
  [/RTX 4090(?! D| Laptop)/, half(165.2, { float8: 330.3, tf32: 82.6, float32: 82.6 })],
  [/RTX 3090(?! Ti)/, half(71, { tf32: 35.6, float32: 35.6 })],
  [/MI355X/, half(2516, { float8: 5033, float32: 157.3 })],
  [/MI350X/, half(2307, { float8: 4614, float32: 144.2 })],
  [/MI3(?:00|25)X/, half(1307.4, { float8: 2614.9, tf32: 653.7, float32: 163.4 })],
  [/MI300A/, half(980.6, { float8: 1961.2, tf32: 490.3, float32: 122.6 })],
  // One device is one of the two dies of a card.
  [/MI250X/, half(191.5, { float32: 47.9 })],
  [/MI250\b/, half(181, { float32: 45.3 })],
  [/MI210/, half(181, { float32: 45.3 })],
]

/** Operations a second; null: the card, or the type on it, is not known. */
export function peakFlops(card: string | null, type: string | null): number | null {
  // A MIG instance has a part of its card.
  if (card === null || type === null || /\bMIG\b/.test(card)) return null
  const tera = CARDS.find(([name]) => name.test(card))?.[1][type as ComputeType]
  return tera === undefined ? null : tera * 1e12
}
