import { describe, expect, it } from 'vitest'
import { exporterSettings } from './settings.ts'

const sets = exporterSettings['metrics.sets']

describe('metrics.sets', () => {
  it('takes a list with commas or a list of the file', () => {
    expect(sets.schema.parse('native, dcgm,native')).toEqual(['native', 'dcgm'])
    expect(sets.schema.parse(['nvidia_smi'])).toEqual(['nvidia_smi'])
    expect(sets.schema.parse(sets.default)).toEqual(['native'])
  })

  it.each(['prometheus', 'native,', '', []])('refuses %j and says what there is', (value) => {
    const result = sets.schema.safeParse(value)
    expect(result.success).toBe(false)
    expect(result.error?.issues[0]?.message).toMatch(/native, dcgm, nvidia_smi/)
  })

  it('names what it did not know', () => {
    expect(sets.schema.safeParse('dcgm,promtheus').error?.issues[0]?.message).toContain('"promtheus"')
  })
})

describe('metrics.max_processes', () => {
  const { schema } = exporterSettings['metrics.max_processes']
  it('is a whole number that is not negative', () => {
    expect(schema.parse('12')).toBe(12)
    for (const bad of [-1, 1.5, 'many']) expect(schema.safeParse(bad).success).toBe(false)
  })
})
