import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { anyGpuInfo, anyGpuProcess, anyHostSample, anyProcessInfo } from '../core/fields/arbitrary.fixture.ts'
import { SCHEMAS } from './schemas.ts'

/** A value that is of no type that any field has. */
const WRONG = [Symbol('wrong')]

describe.each<readonly [name: string, any: fc.Arbitrary<object>, schema: z.ZodType]>([
  ['GpuInfo', anyGpuInfo, SCHEMAS.GpuInfo],
  ['GpuProcess', anyGpuProcess, SCHEMAS.GpuProcess],
  ['ProcessInfo', anyProcessInfo, SCHEMAS.ProcessInfo],
  ['HostSample', anyHostSample, SCHEMAS.HostSample],
])('the schema of %s', (_name, any, schema) => {
  it('accepts what the table allows, and gives it back unchanged', () => {
    fc.assert(
      fc.property(any, (value) => {
        expect(schema.parse(value)).toEqual(value)
      }),
    )
  })

  it('refuses it with a field too few, too many or of a wrong type', () => {
    fc.assert(
      fc.property(any, (value) => {
        expect(schema.safeParse({ ...value, surplus: 1 }).success).toBe(false)
        for (const field in value) {
          const { [field]: _, ...without } = value as Record<string, unknown>
          expect(schema.safeParse(without).success, `without ${field}`).toBe(false)
          expect(schema.safeParse({ ...value, [field]: WRONG }).success, `wrong ${field}`).toBe(false)
        }
      }),
      { numRuns: 10 },
    )
  })
})
