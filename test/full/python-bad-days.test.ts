/** The Python SDK when things go wrong. */
import { expect, it } from 'vitest'
import { LIMIT_MS, unittest } from '../python-unittest.ts'

it('stands agents that are away or killed, full disks, forks and ends of programs', { timeout: LIMIT_MS }, async () => {
  expect(await unittest('tests.test_bad_days')).toMatch(/\nOK\n$/)
})
