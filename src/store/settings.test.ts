import { describe, expect, it } from 'vitest'
import { storeSettings } from './settings.ts'

describe('settings', () => {
  it.each(Object.entries(storeSettings))('%s accepts its own default', (_, { schema, default: value }) => {
    expect(schema.parse(value)).toBe(value)
  })

  it('refuses sizes that make no sense', () => {
    for (const key of ['log.rotate_mb', 'log.rotate_hours', 'log.batch_samples', 'log.buffer_mb', 'history.samples'] as const)
      expect(storeSettings[key].schema.safeParse(0).success, key).toBe(false)
    expect(storeSettings['log.keep_days'].schema.safeParse(0).success).toBe(true)
  })
})
