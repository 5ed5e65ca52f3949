import type { Hyperparameter, Hyperparameters } from '../../../../src/core/hyperparameters.ts'

export interface DifferingSetting {
  readonly name: string
  /** One for each run; undefined: it has none. */
  readonly values: readonly (Hyperparameter | undefined)[]
}

/** In the order of the runs that have them; nothing of runs that have none at all. */
export function differingSettings(runs: readonly Hyperparameters[]): readonly DifferingSetting[] {
  const names = [...new Set(runs.flatMap((settings) => Object.keys(settings)))]
  const told = runs.filter((settings) => Object.keys(settings).length > 0)
  return names
    .filter((name) => told.some((settings) => settings[name] !== told[0]?.[name]))
    .map((name) => ({ name, values: runs.map((settings) => settings[name]) }))
}
