export interface Part {
  readonly file: string
  readonly part: string | null
  readonly make: () => string | Promise<string>
}
export const PARTS: readonly Part[]
export function made(part: Part): Promise<string>
