export class Tuple {
  constructor(...items: readonly unknown[])
}
export class Shared {
  readonly value: unknown
  constructor(value: unknown)
}
export class Float {
  constructor(value: number)
}
export interface WriterOptions {
  readonly writer?: 'python' | 'cpp'
  readonly protocol?: number
}
export class PickleWriter {
  readonly written: number
  constructor(sink: (bytes: Uint8Array) => void, options?: WriterOptions)
  static bytes(value: unknown, options?: WriterOptions): Buffer
  write(value: unknown): void
}
