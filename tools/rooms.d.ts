export interface Edge {
  readonly from: string
  readonly to: string
  readonly isType: boolean
}
export const SRC: string
export const LAYERS: readonly string[]
export function roomOf(path: string): string
export function layerOf(room: string): number
export function sourceFiles(folder?: string, pattern?: RegExp): string[]
export function importsOf(path: string): { readonly to: string; readonly isType: boolean }[]
export function edges(): Edge[]
export function roomGraph(all?: readonly Edge[]): Map<string, string[]>
export function judge(from: string, to: string): string | null
export function circles(all?: readonly Edge[]): string[][]
