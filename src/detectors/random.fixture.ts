/** Seeded chance for tests: the same seed gives the same series. */
export interface Random {
  /** 0 ≤ x < 1 */
  uniform(): number
  normal(): number
  /** Student's t: heavy tails for few degrees of freedom. */
  student(freedom: number): number
}

export function random(seed: number): Random {
  let state = (seed * 0x9e3779b9) >>> 0 || 1
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
  const student = (freedom: number) => {
    let squares = 0
    for (let index = 0; index < freedom; index++) squares += normal() ** 2
    return normal() / Math.sqrt(squares / freedom)
  }
  return { uniform, normal, student }
}
