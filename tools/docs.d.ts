export interface Part {
  readonly file: string
  readonly part: string | null
  readonly make: () => string
}
export const PARTS: readonly Part[]
export function made(part: Part, text?: string): string
