import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { ERRORS } from '../core/route-errors.ts'
import { accuracyRoute } from './accuracy-route.ts'
import { configRoute } from './config-route.ts'
import { doctorRoute } from './doctor-route.ts'
import { grafanaRoutes } from './grafana-routes.ts'
import { pastFindingsRoute } from './past-findings-route.ts'
import { collectingLog, pretendAgent, pretendHistory, pretendMetrics, settingsWith } from './pretend-agent.contract.ts'
import { processHistoryRoute } from './process-history-route.ts'
import { replayRoutes } from './replay-route.ts'
import { createServer } from './server.ts'

const PLAYBACK = { state: 'paused', at: null, speed: 1, jumps: 0 } as const

it('docs/http-api.md has every route and every error code', async () => {
  const text = await readFile(new URL('../../docs/http-api.md', import.meta.url), 'utf8')
  const state = pretendAgent()
  const { routes } = createServer({
    state,
    history: pretendHistory(),
    metrics: pretendMetrics,
    log: collectingLog(),
    version: '0',
    settings: settingsWith(),
    routes: [
      configRoute(() => ({ file: null, warnings: [], settings: [] })),
      doctorRoute({ examine: async () => '', now: state.now }),
      accuracyRoute(30, null),
      ...replayRoutes({ view: () => ({ ...PLAYBACK, firstAt: null, lastAt: null, marks: [], forwardOnly: null }), steer: () => null }),
      ...grafanaRoutes('nowhere'),
      pastFindingsRoute({ state, past: { query: () => [] } }),
      processHistoryRoute({ state, past: { query: ({ gpu }) => ({ gpu, stepMs: 1, at: [], processes: [] }) } }),
    ],
  })
  for (const { path } of routes) expect(text).toContain(`\`${path}\``)
  for (const code of Object.keys(ERRORS)) expect(text).toContain(`\`${code}\``)
})
