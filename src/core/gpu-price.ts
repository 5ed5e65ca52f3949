/** What an hour of a card costs about, by its name. */

/** US dollars per GPU hour, about what on-demand clouds charged in 2025; the first match counts. */
const PRICES: readonly (readonly [pattern: RegExp, price: number])[] = [
  [/\bGB?200|\bB200/, 6],
  [/\bH200/, 3.8],
  [/\bGH200/, 3.2],
  [/\bH100/, 3],
  [/\bA100.*80GB/, 1.8],
  [/\bA100/, 1.4],
  [/\bL40S/, 1.1],
  [/\bL40/, 0.9],
  [/\bL4\b/, 0.7],
  [/\bA10G?\b/, 0.9],
  [/\bA40\b/, 0.6],
  [/\bV100/, 0.9],
  [/\bT4\b/, 0.4],
  [/\bP100/, 0.5],
  [/RTX PRO 6000/, 1.8],
  [/RTX 6000 Ada/, 0.8],
  [/RTX A6000/, 0.6],
  [/RTX 5090/, 0.7],
  [/RTX 4090/, 0.45],
  [/RTX 3090/, 0.25],
  [/MI355/, 4.5],
  [/MI325/, 3],
  [/MI300/, 2.5],
  [/MI2\d0/, 1.2],
]

export function listPrice(name: string | null): number | null {
  return name === null ? null : (PRICES.find(([pattern]) => pattern.test(name))?.[1] ?? null)
}
