import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { ERRORS } from '../route-errors.ts'
import { collectingLog, pretendAgent, pretendHistory, pretendMetrics, settingsWith } from './pretend-agent.contract.ts'
import { createServer } from './server.ts'

it('docs/http-api.md has every route and every error code', async () => {
  const text = await readFile(new URL('../../docs/http-api.md', import.meta.url), 'utf8')
  const { routes } = createServer({
    state: pretendAgent(),
    history: pretendHistory(),
    metrics: pretendMetrics,
    log: collectingLog(),
    version: '0',
    settings: settingsWith(),
  })
  for (const { path } of routes) expect(text).toContain(`\`${path}\``)
  for (const code of Object.keys(ERRORS)) expect(text).toContain(`\`${code}\``)
})
