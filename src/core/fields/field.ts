/** Tables that list each field once; its type, its column in a recording and its API schema follow from the row. Data only, no imports. */

/**
 * How a recording writes a value: `percent` of a ratio, `mebibytes` of bytes, `megahertz` of hertz, `time` (ISO 8601) of epoch milliseconds,
 * `same` and `text` as they are. `any` is a number that may be NaN or infinite, too.
 */
export type Scale = 'same' | 'any' | 'percent' | 'mebibytes' | 'megahertz' | 'time' | 'text'

/** A field with its own column in a recording; null when unknown. */
export interface Column {
  readonly column: string
  readonly scale: Scale
}

export type ColumnTable = Readonly<Record<string, Column>>

export type ColumnsOf<Table extends ColumnTable> = {
  readonly [Field in keyof Table]: (Table[Field]['scale'] extends 'text' ? string : number) | null
}

/** A field recorded under its own name. When unknown: `flag` is false, `texts` and `list` empty, others null; `name`, `count` and a choice with `missing` never are. */
export type Fact =
  | { readonly is: 'name' | 'count' | 'reading' | 'text' | 'flag' | 'texts' }
  | { readonly is: 'choice'; readonly of: readonly string[]; readonly missing?: string }
  | { readonly is: 'object' | 'list'; readonly of: FactTable }

export interface FactTable {
  readonly [field: string]: Fact
}

interface PlainValues {
  readonly name: string
  readonly count: number
  readonly reading: number | null
  readonly text: string | null
  readonly flag: boolean
  readonly texts: Readonly<Record<string, string>>
}

type FactValue<F> = F extends { readonly is: keyof PlainValues }
  ? PlainValues[F['is']]
  : F extends { readonly of: readonly (infer Choice)[] }
    ? F extends { readonly missing: string }
      ? Choice
      : Choice | null
    : F extends { readonly is: 'list'; readonly of: infer Table }
      ? readonly FactsOf<Table>[]
      : F extends { readonly of: infer Table }
        ? FactsOf<Table> | null
        : never

export type FactsOf<Table> = { readonly [Field in keyof Table]: FactValue<Table[Field]> }

export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export function isAlwaysKnown(fact: Fact): boolean {
  return fact.is === 'name' || fact.is === 'count' || (fact.is === 'choice' && fact.missing !== undefined)
}

export function unknownFact({ is }: Fact): null | false | readonly never[] | Readonly<Record<string, never>> {
  return is === 'flag' ? false : is === 'texts' ? Object.freeze({}) : is === 'list' ? Object.freeze([]) : null
}

export function rowsOf<Field extends string, Row extends object>(
  table: Readonly<Record<Field, Row>>,
): readonly (Row & { readonly field: Field })[] {
  return Object.entries<Row>(table).map(([field, row]) => ({ ...row, field: field as Field }))
}

/** All fields null: the start of a sample. */
export function nothingKnown<Table extends ColumnTable>(table: Table): ColumnsOf<Table> {
  return Object.freeze(Object.fromEntries(Object.keys(table).map((field) => [field, null]))) as ColumnsOf<Table>
}
