import type { DetectorInput } from '../core/detector-contract.ts'
import type { Finding } from '../core/model.ts'
import { NO_FINDINGS } from './finding.ts'

type InputOf<Type> = Extract<DetectorInput, { readonly type: Type }>
/** Undefined: nothing found. */
type Take<Input> = (input: Input) => readonly Finding[] | undefined

/** `accept` of a detector from one function for each type of input. */
export function byType(
  takes: { readonly [Type in DetectorInput['type']]?: Take<InputOf<Type>> },
): (input: DetectorInput) => readonly Finding[] {
  return (input) => (takes[input.type] as Take<DetectorInput> | undefined)?.(input) ?? NO_FINDINGS
}
