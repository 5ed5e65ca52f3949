import { afterEach, expect, it, vi } from 'vitest'
import { loadConfig } from '../agent/config.ts'
import { sourceHealth, tickOf } from '../alerts/pretend-world.contract.ts'
import type { HubEvent } from '../core/kinds.ts'
import { createJudge } from './top-feeds.ts'

const AT = 1_760_000_000_000
afterEach(() => vi.restoreAllMocks())

it('a source that is silent while others send is shown where the dashboard samples by itself', async () => {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(AT)
  const shown: HubEvent[] = []
  const silent = sourceHealth({ source: 'nvidia', lastSampleAt: AT - 60_000, since: AT - 60_000 })
  const judge = await createJudge(
    loadConfig({ env: { XDG_CONFIG_HOME: '/nonexistent' } }),
    (event) => shown.push(event),
    () => [silent],
  )
  for (let second = 0; second <= 45; second++) {
    clock.mockReturnValue(AT + second * 1000)
    judge({ type: 'tick', tick: tickOf(AT + second * 1000, [], null, 'host') })
  }
  expect(shown).toMatchObject([{ type: 'finding', finding: { fingerprint: 'source_stale|source=nvidia', state: 'active' } }])
})
