/** The Python SDK: its parts, and what it brings to the real agent. */
import { describe, expect, it } from 'vitest'
import { LIMIT_MS, unittest } from './python-unittest.ts'

describe('the Python SDK', () => {
  it('does what each part says', async () => {
    expect(await unittest('tests.test_units', 'tests.test_gpu_memory', 'tests.test_recording', 'tests.test_hooks')).toMatch(/\nOK\n$/)
  })

  it('brings every step to the agent, once', { timeout: LIMIT_MS }, async () => {
    expect(await unittest('tests.test_real_agent')).toMatch(/\nOK\n$/)
  })

  it('answers to the names of the tools before it', { timeout: LIMIT_MS }, async () => {
    expect(await unittest('tests.test_older_names')).toMatch(/\nOK\n$/)
  })

  it('names the line of a leak while the run goes on', { timeout: LIMIT_MS }, async () => {
    expect(await unittest('tests.test_live_recording')).toMatch(/\nOK\n$/)
  })
})
