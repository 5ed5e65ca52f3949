/** The shapes of answers that follow from the field tables. */
import { z } from 'zod'
import type { ColumnsOf, ColumnTable, Fact, FactsOf, FactTable } from '../core/fields/field.ts'

type Shape<T> = { readonly [Field in keyof T]: z.ZodType<T[Field]> }

const reading = z.number().nullable()
const text = z.string().nullable()

export function columnShape<Table extends ColumnTable>(table: Table): Shape<ColumnsOf<Table>> {
  const shape = Object.entries(table).map(([field, { scale }]) => [field, scale === 'text' ? text : reading])
  return Object.fromEntries(shape) as Shape<ColumnsOf<Table>>
}

export function factShape<Table extends FactTable>(table: Table): Shape<FactsOf<Table>> {
  const shape = Object.entries<Fact>(table).map(([field, fact]) => [field, factSchema(fact)])
  return Object.fromEntries(shape) as Shape<FactsOf<Table>>
}

function factSchema(fact: Fact): z.ZodType {
  switch (fact.is) {
    case 'name':
      return z.string()
    case 'count':
      return z.number().int()
    case 'reading':
      return reading
    case 'text':
      return text
    case 'flag':
      return z.boolean()
    case 'texts':
      return z.record(z.string(), z.string())
    case 'choice':
      return fact.missing === undefined ? z.enum(fact.of).nullable() : z.enum(fact.of)
    case 'object':
      return z.strictObject(factShape(fact.of)).nullable()
    case 'list':
      return z.array(z.strictObject(factShape(fact.of)))
  }
}
