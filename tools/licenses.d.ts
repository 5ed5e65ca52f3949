export interface LockedPackage {
  readonly name: string
  readonly version: string
  readonly license: string | null
  readonly isShipped: boolean
  readonly hasInstallScript: boolean | undefined
  readonly integrity: string | undefined
}
export const BUNDLED: readonly string[]
export function packages(): readonly LockedPackage[]
export function licensesPage(): string
