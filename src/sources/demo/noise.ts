/** Noise that is a function of its arguments alone: the same seed and moment give the same value, in whatever order they are asked for. */

/** 0 ≤ value < 1 */
export function hash(seed: number, stream: number, index: number): number {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 0x165667b1, 0xc2b2ae35) ^ Math.imul(index | 0, 0x27d4eb2f)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d)
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39)
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296
}

/** −1 to 1, smooth over time, with a new target every `periodSeconds`. */
export function drift(seed: number, stream: number, seconds: number, periodSeconds: number): number {
  const position = seconds / periodSeconds
  const index = Math.floor(position)
  const fraction = position - index
  const eased = fraction * fraction * (3 - 2 * fraction)
  const from = hash(seed, stream, index)
  return 2 * (from + (hash(seed, stream, index + 1) - from) * eased) - 1
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high)
}

export function roundTo(value: number, step: number): number {
  const inverse = 1 / step
  return Math.round(value * inverse) / inverse
}
