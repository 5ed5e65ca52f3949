/** Alerts on the screen: their rows, their keys, and what goes to the agent. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { AgentClient } from '../core/agent-client.ts'
import type { AlertView } from '../core/alert-contract.ts'
import { alertWith } from '../core/model.fixture.ts'
import { AgentAlerts } from './agent-alerts.ts'
import { alertRows } from './alert-rows.ts'
import type { LiveState } from './live-state.ts'
import type { Outcome } from './outcome.ts'
import { reduce } from './reduce.ts'
import { render } from './render.ts'
import { AT, emptyState, finding, gpuInfo, gpuSample, worldState } from './screen-data.fixture.ts'
import { FIRST_VIEW, type ScreenData, type View } from './screen-data.ts'
import { createTheme } from './theme.ts'

process.env.TZ = 'UTC'
const HOUR_MS = 3_600_000
const theme = createTheme('dark', 'many', false)
const hot = finding('thermal', { gpu: 'GPU-0', severity: 'critical', message: 'GPU 0 is too hot.' })
const idle = finding('idle_holding', { gpu: 'GPU-0', pid: 7, message: 'Process 7 does nothing.' })

const silenced: Partial<AlertView> = { silence: 'abc', mutedBy: 'silence' }
const acknowledged = (until: number): Partial<AlertView> => ({ acknowledged: { at: AT, by: 'ada', until, severity: 'warning' } })

function dataWith(alerts: readonly AlertView[] | null, isReadonly = false): ScreenData {
  const state = worldState({ infos: [gpuInfo(0)], samples: [gpuSample('GPU-0')], findings: [hot, idle] })
  state.takeAlerts(alerts && { at: AT, alerts })
  state.silenceEnds = new Map([['abc', AT + HOUR_MS]])
  state.isReadonly = isReadonly
  return state.data({ columns: 100, gpu: null })
}

function press(data: ScreenData, ...names: string[]): Outcome {
  let outcome: Outcome = { view: FIRST_VIEW, effect: null }
  for (const name of names) {
    const frame = render(data, outcome.view, { columns: 110, rows: 30 }, theme)
    outcome = reduce(outcome.view, name.length === 1 ? { type: 'char', char: name } : { type: 'key', name }, { data, frame })
  }
  return outcome
}

const screen = (data: ScreenData, view: View, columns = 110) => render(data, view, { columns, rows: 30 }, theme).grid.text()

describe('the rows of alerts', () => {
  it('say what is done about each', () => {
    const words = (more: Partial<AlertView>) => alertRows(dataWith([alertWith(hot, more)]))[0]?.words
    expect(words({})).toBe('firing')
    expect(words({ state: 'pending' })).toBe('pending')
    expect(words({ ...acknowledged(AT + HOUR_MS), mutedBy: 'acknowledged' })).toBe('acknowledged by ada until 09:53')
    expect(words(acknowledged(AT - 1))).toBe('firing')
    expect(words(silenced)).toBe('silenced until 09:53')
    expect(words({ mutedBy: 'maintenance' })).toBe('firing, quiet: maintenance')
  })

  it('hold every finding once, what is over last', () => {
    const rows = alertRows(dataWith([alertWith(hot, { state: 'resolved' })]))
    expect(rows.map(({ finding: { detector }, isOpen }) => [detector, isOpen])).toEqual([
      ['idle_holding', false],
      ['thermal', false],
    ])
    expect(rows[1]?.words).toBe('resolved')
  })
})

describe('the alerts on the screen', () => {
  it('are shown with their state, in a wide and a narrow window', () => {
    const data = dataWith([alertWith(hot), alertWith(idle, silenced)])
    const { view } = press(data, 'a')
    expect(screen(data, view)).toMatch(/!! +2m00 thermal +firing +GPU 0 is too hot\./)
    expect(screen(data, view)).toMatch(/! +2m00 idle holding +silenced until 09:53 Process 7 does nothing\./)
    expect(screen(data, view)).toContain('A acknowledge 4 h')
    expect(screen(data, view, 40)).toMatch(/!! firing/)
  })

  it('are findings alone where alerts are off, and no key pretends otherwise', () => {
    const data = dataWith(null)
    const { view, effect } = press(data, 'a', 'A')
    expect(effect).toBe(null)
    expect(view.message?.text).toMatch(/alerts need a running agent/)
    expect(screen(data, view)).not.toContain('acknowledge')
    expect(screen(data, view)).toContain('GPU 0 is too hot.')
  })

  it('are acknowledged and silenced, the latter after a question', () => {
    const data = dataWith([alertWith(hot), alertWith(idle)])
    expect(press(data, 'a', 'A').effect).toEqual({ kind: 'acknowledge', finding: hot })
    expect(press(data, 'a', 'down', 'A').effect).toEqual({ kind: 'acknowledge', finding: idle })
    const asked = press(data, 'a', 'down', 'S')
    expect(asked.effect).toBe(null)
    expect(screen(data, asked.view)).toMatch(/Silence this alert\?.*Process 7 does nothing.*silence it for 4 hours/s)
    expect(press(data, 'a', 'down', 'S', 'enter')).toMatchObject({ effect: null, view: { overlay: { kind: 'alerts' } } })
    expect(press(data, 'a', 'down', 'S', 'escape')).toMatchObject({ effect: null, view: { overlay: { kind: 'alerts' } } })
    expect(press(data, 'a', 'down', 'S', 'down', 'enter').effect).toEqual({ kind: 'silence', finding: idle })
  })

  it('are left alone with --readonly, and when they are over', () => {
    for (const key of ['A', 'S']) {
      expect(press(dataWith([alertWith(hot)], true), 'a', key)).toMatchObject({ effect: null, view: { message: { isTrouble: true } } })
      expect(press(dataWith([alertWith(hot, { state: 'resolved' })]), 'a', 'end', key)).toMatchObject({
        effect: null,
        view: { message: { text: 'it is resolved' } },
      })
    }
  })

  it('stay chosen when others come and go', () => {
    const { view } = press(dataWith([alertWith(hot), alertWith(idle)]), 'a', 'down')
    const worse = finding('xid', { severity: 'critical', message: 'XID 79.' })
    const later = dataWith([alertWith(worse), alertWith(hot), alertWith(idle)])
    const frame = render(later, view, { columns: 110, rows: 30 }, theme)
    expect(reduce(view, { type: 'char', char: 'A' }, { data: later, frame }).effect).toEqual({ kind: 'acknowledge', finding: idle })
  })

  it('need two clicks: one to point, one to open', () => {
    const data = dataWith([alertWith(hot), alertWith(idle)])
    const { view } = press(data, 'a')
    const frame = render(data, view, { columns: 110, rows: 30 }, theme)
    const y = frame.grid
      .text()
      .split('\n')
      .findIndex((line) => /idle holding +firing/.test(line))
    const once = reduce(view, { type: 'click', x: 20, y }, { data, frame })
    expect(once.view.overlay).toEqual({ kind: 'alerts', selected: 1, fingerprint: idle.fingerprint })
    expect(reduce(once.view, { type: 'click', x: 20, y }, { data, frame }).view.overlay).toMatchObject({ kind: 'finding' })
  })

  it('open their details', () => {
    expect(press(dataWith([alertWith(hot)]), 'a', 'enter').view.overlay).toMatchObject({ kind: 'finding', fingerprint: hot.fingerprint })
  })
})

describe('the alerts of an agent', () => {
  const alertsOf = (state: LiveState) => state.data({ columns: 100, gpu: null }).alerts
  const servers: Server[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })

  async function agent(answer: (request: IncomingMessage, body: string) => [number, object]) {
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (part) => {
        body += part
      })
      request.on('end', () => {
        const [status, value] = answer(request, body)
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
      })
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new AgentClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 'a-token' })
  }

  it('are read with the ends of their silences', async () => {
    const state = emptyState()
    const told = alertWith(hot, silenced)
    const desk = new AgentAlerts(
      await agent(({ url }) => [200, url === '/api/v1/alerts' ? { at: AT, alerts: [told] } : { silences: [{ id: 'abc', until: AT }] }]),
      state,
    )
    await desk.refresh()
    expect(alertsOf(state)).toMatchObject([{ state: 'firing', mutedBy: 'silence', silencedUntil: AT }])
  })

  it('are none when the agent does not alert', async () => {
    const state = emptyState()
    state.takeAlerts({ at: AT, alerts: [alertWith(hot)] })
    await new AgentAlerts(await agent(() => [503, { error: { message: 'Alerts are switched off.' } }]), state).refresh()
    expect(alertsOf(state)).toBe(null)
  })

  it('are acknowledged and silenced for four hours, by who sits there, with the token', async () => {
    const posted: [string, string | undefined, Record<string, unknown>][] = []
    const until = Date.now() + 4 * HOUR_MS
    const desk = new AgentAlerts(
      await agent(({ method, url, headers }, body) => {
        if (method === 'GET') return [200, { at: AT, alerts: [], silences: [] }]
        posted.push([url ?? '', headers.authorization, JSON.parse(body)])
        return [200, url?.endsWith('/ack') ? { acknowledged: { by: 'ada', until } } : { id: 'abc', until }]
      }),
      emptyState(),
    )
    expect(await desk.acknowledge('thermal|GPU-0')).toMatch(/^acknowledged by ada until (\d{4}-\d\d-\d\d )?\d\d:/)
    expect(await desk.silence('thermal|GPU-0')).toContain('gpuwarden alerts unsilence abc')
    expect(posted).toMatchObject([
      ['/api/v1/alerts/thermal%7CGPU-0/ack', 'Bearer a-token', { seconds: 14_400 }],
      [
        '/api/v1/silences',
        'Bearer a-token',
        { seconds: 14_400, matchers: [{ name: 'fingerprint', operator: '=', value: 'thermal|GPU-0' }] },
      ],
    ])
  })

  it('give the reason when the agent refuses', async () => {
    const desk = new AgentAlerts(await agent(() => [404, { error: { message: 'There is no open alert.' } }]), emptyState())
    await expect(desk.acknowledge('x')).rejects.toThrow(/^the agent at http\S+ says: There is no open alert\.$/)
  })
})
