/** The next round number: 1, 2, 2.5 or 5 times a power of ten, or whole days of GPUs. */
export function niceTop(most: number): number {
  const days = Math.ceil(most / 24) * 24
  if (most >= 24 && days <= most * 1.25) return days
  const power = 10 ** Math.floor(Math.log10(most))
  return ([1, 2, 2.5, 5, 10].find((step) => step * power >= most) ?? 10) * power
}
