export interface PlantedOptions {
  readonly seed?: number
  readonly stacks?: 'all' | 'python'
  readonly writer?: 'python' | 'cpp'
  readonly protocol?: number
  readonly cutEvents?: number
}
export interface PlantedTruth {
  readonly bytes: number
  readonly events: number
  readonly steps: number
  readonly end: { readonly reserved: number; readonly live: number; readonly free: number }
  readonly peak: {
    readonly bytes: number
    readonly event_index: number
    readonly time_us: number
    readonly by_line: Readonly<Record<string, number>>
    readonly by_category: Readonly<Record<string, number>>
  }
  readonly leak: { readonly line: string; readonly bytes_per_step: number; readonly bytes: number }
  readonly not_leaks: readonly string[]
  readonly fragmentation: {
    readonly line: string
    readonly pinned_segments: number
    readonly free_in_pinned: number
    readonly pin_bytes: number
    readonly largest_free_block: number
    readonly request: number
    readonly device_free: number
  }
  readonly retries: { readonly segments: number; readonly bytes: number }
}
export function writePlanted(sink: (bytes: Uint8Array) => void, options: PlantedOptions & { readonly steps: number }): PlantedTruth
export function stepsFor(bytes: number, options?: PlantedOptions): number
