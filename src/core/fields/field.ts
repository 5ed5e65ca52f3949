/**
 * What the tables of fields are made of. A table lists each field of a part of the model once;
 * its type, its column in a recording and its schema in the API follow from the row. Data alone, without imports.
 */

/**
 * How a recording writes a value: `percent` of a ratio, `mebibytes` of bytes, `megahertz` of hertz, `time` (ISO 8601) of epoch milliseconds,
 * `same` and `text` as they are. `any` is a number that may be NaN or infinite, too.
 */
export type Scale = 'same' | 'any' | 'percent' | 'mebibytes' | 'megahertz' | 'time' | 'text'

/** A field with a column of its own in a recording. It is null where it is unknown. */
export interface Column {
  readonly column: string
  readonly scale: Scale
}

export type ColumnTable = Readonly<Record<string, Column>>

/** The part of the model that a table of columns lists. */
export type ColumnsOf<Table extends ColumnTable> = {
  readonly [Field in keyof Table]: (Table[Field]['scale'] extends 'text' ? string : number) | null
}

/**
 * A field that a recording writes under its own name. `name` and `count` are always known; `reading`, `text`, `choice` and `object` are null
 * where they are unknown, `flag` is then false, and `texts` (texts by name) is empty. A choice with `missing` is never null.
 */
export type Fact =
  | { readonly is: 'name' | 'count' | 'reading' | 'text' | 'flag' | 'texts' }
  | { readonly is: 'choice'; readonly of: readonly string[]; readonly missing?: string }
  | { readonly is: 'object'; readonly of: FactTable }

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
    : F extends { readonly of: infer Table }
      ? FactsOf<Table> | null
      : never

/** The part of the model that a table of facts lists. */
export type FactsOf<Table> = { readonly [Field in keyof Table]: FactValue<Table[Field]> }

export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export function isAlwaysKnown(fact: Fact): boolean {
  return fact.is === 'name' || fact.is === 'count' || (fact.is === 'choice' && fact.missing !== undefined)
}

/** What stands where a fact that need not be known is unknown. */
export function unknownFact({ is }: Fact): null | false | Readonly<Record<string, never>> {
  return is === 'flag' ? false : is === 'texts' ? Object.freeze({}) : null
}

/** A table's rows with their fields, in its order. */
export function rowsOf<Field extends string, Row extends object>(
  table: Readonly<Record<Field, Row>>,
): readonly (Row & { readonly field: Field })[] {
  return Object.entries<Row>(table).map(([field, row]) => ({ ...row, field: field as Field }))
}

/** Every field of a table of columns null: the start of a sample, to be overwritten with what was read. */
export function nothingKnown<Table extends ColumnTable>(table: Table): ColumnsOf<Table> {
  return Object.freeze(Object.fromEntries(Object.keys(table).map((field) => [field, null]))) as ColumnsOf<Table>
}
