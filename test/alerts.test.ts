/** Alerts with the real program and a real mail server: they arrive, late when they have to, and what is wrong is said. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from './fake-nvml/index.ts'
import { type Mailbox, type MailboxOptions, openMailbox } from './mailbox.ts'
import { FIXTURES, RunningAgent, run, temporaryFolder, until } from './program.ts'

interface AlertList {
  alerts: { fingerprint: string; state: string; mutedBy: string | null; told: string[]; simulated: boolean }[]
}
interface ChannelList {
  channels: { channel: string; depth: number; problem: string | null; results: Record<string, number> }[]
}

interface GpuList {
  gpus: { info: { id: string; label: string }; sample: { state: string } | null }[]
}

const PASSWORD = 'T0pSecret-a1b2c3d4e5'
const agents: RunningAgent[] = []
afterEach(async () => {
  for (const agent of agents.splice(0)) {
    agent.child.kill('SIGKILL')
    await agent.ended
  }
})

async function start(args: string[], env: NodeJS.ProcessEnv = {}, logDir?: string): Promise<RunningAgent> {
  const agent = await RunningAgent.start(args, env, logDir)
  agents.push(agent)
  return agent
}

async function mailbox(options: MailboxOptions = {}): Promise<Mailbox> {
  const box = await openMailbox(options)
  onTestFinished(() => box.close())
  return box
}

/** A port that nobody listens on, to be taken later. */
async function freePort(): Promise<number> {
  const box = await openMailbox()
  await box.close()
  return box.port
}

/** Exactly the variables that the first of the seeds is configured by. */
const mailVariables = (port: number, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  SMTP_SERVER: '127.0.0.1',
  SMTP_PORT: String(port),
  EMAIL_ADDRESS: 'gpu@example.org',
  TO_EMAILS: 'ops@example.org,ada@example.org',
  ...more,
})

const yaml = (text: string): string => {
  const file = join(temporaryFolder(), 'gpuwarden.yaml')
  writeFileSync(file, text)
  return file
}

const library = buildFakeNvml()

/** An agent on live (if fake) hardware with two GPUs, of which the second is then lost: a critical alert. */
async function withLostGpu(env: NodeJS.ProcessEnv, logDir?: string) {
  const script = fakeNvmlScript({ gpus: 2 })
  const args = ['--source', 'nvidia', '--interval', '0.2']
  const startAgent = (dir?: string) => start(args, { GPUWARDEN_NVML: library, ...script.env, ...env }, dir)
  const agent = await startAgent(logDir)
  await until('it is ready', async () => (await fetch(`${agent.url}/readyz`)).ok)
  script.update({ lost: [1] })
  await until('the alert fires', async () => (await lostAlert(agent))?.state === 'firing')
  return { agent, startAgent }
}

const lostAlert = async (agent: RunningAgent) =>
  (await agent.get<AlertList>('/api/v1/alerts')).alerts.find((alert) => alert.fingerprint.startsWith('gpu_lost'))

const channelOf = async (agent: RunningAgent, name: string) =>
  (await agent.get<ChannelList>('/api/v1/channels')).channels.find((channel) => channel.channel === name)

const lostMails = (box: Mailbox) => box.mails.filter((mail) => /CRITICAL .*gpu lost/.test(mail.subject))

describe('an alert', () => {
  it('of a recording arrives by e-mail, marked, when simulated ones are wanted', async () => {
    const box = await mailbox({ password: PASSWORD })
    const agent = await start(['--source', `replay:${join(FIXTURES, 'traces/divergence')}`, '--speed', 'max'], {
      ...mailVariables(box.port, { EMAIL_PASSWORD: PASSWORD }),
      GPUWARDEN_ALERTS_SIMULATED: 'true',
      GPUWARDEN_ALERTS_GROUP_SECONDS: '0',
    })
    const mail = await until('a mail is there', () => box.mails.find(({ text }) => /loss nan/.test(text)))
    expect(mail.subject).toMatch(/^\[gpuwarden\] SIMULATED (CRITICAL|LATE|WARNING)/)
    expect(mail.to).toEqual(['ops@example.org', 'ada@example.org'])
    expect(mail.user).toBe('gpu@example.org')
    expect(mail.text).toMatch(/^X-Gpuwarden-Simulated: yes\r?$/m)
    const metrics = await until('it is counted', async () => {
      const text = await agent.text('/metrics')
      return /gpuwarden_alert_deliveries_total\{channel="email",result="delivered"\} [1-9]/.test(text) ? text : null
    })
    expect(metrics).toMatch(/^gpuwarden_alerts\{state="firing"\} \d+$/m)
    for (const one of box.mails) expect(one.text).not.toContain(PASSWORD)
  })

  it.each([
    ['leak_graph', /^X-Gpuwarden-Detector: .*leak/m],
    ['divergence', /^X-Gpuwarden-Detector: .*loss_nan/m],
  ])('carries a chart of its evidence: %s', async (trace, detector) => {
    const box = await mailbox()
    await start(['--source', `replay:${join(FIXTURES, 'traces', trace)}`, '--speed', 'max'], {
      ...mailVariables(box.port),
      GPUWARDEN_ALERTS_SIMULATED: 'true',
      GPUWARDEN_ALERTS_GROUP_SECONDS: '0',
    })
    const mail = await until('a mail is there', () => box.mails.find(({ text }) => detector.test(text)))
    expect(mail.text).toMatch(/Content-Type: image\/png/)
    expect(mail.text.replaceAll('=\r\n', '')).toMatch(/src=3D"cid:chart-\d@gpuwarden"/)
  })

  it('of simulated GPUs is listed and not delivered unless that is wanted', async () => {
    const box = await mailbox()
    const agent = await start(['--source', `replay:${join(FIXTURES, 'traces/divergence')}`, '--speed', 'max'], {
      ...mailVariables(box.port),
      GPUWARDEN_ALERTS_GROUP_SECONDS: '0',
    })
    await until('it is listed', async () =>
      (await agent.get<AlertList>('/api/v1/alerts')).alerts.some((one) => one.mutedBy === 'simulated'),
    )
    await agent.stop()
    expect(box.mails).toEqual([])
  })

  it('waits for a mail server that is down, and arrives when it is back', async () => {
    const port = await freePort()
    const { agent } = await withLostGpu(mailVariables(port))
    await until('a try has failed', async () => ((await channelOf(agent, 'email'))?.results.retried ?? 0) > 0)
    expect((await channelOf(agent, 'email'))?.depth).toBe(1)
    expect(await agent.text('/metrics')).toMatch(/^gpuwarden_alert_spool_oldest_age_seconds\{channel="email"\} \d/m)
    const box = await mailbox({ port })
    await until('it arrived', () => lostMails(box).length > 0)
    await until('the channel knows', async () => (await channelOf(agent, 'email'))?.depth === 0)
    expect((await lostAlert(agent))?.told).toContain('email')
    expect(lostMails(box)).toHaveLength(1)
  })

  it('is delivered once by the next start when the agent was killed before it could be', async () => {
    const port = await freePort()
    const { agent, startAgent } = await withLostGpu(mailVariables(port))
    await until('a try has failed', async () => ((await channelOf(agent, 'email'))?.results.retried ?? 0) > 0)
    await agent.stop('SIGKILL')
    const box = await mailbox({ port })
    const next = await startAgent(agent.logDir)
    await until('it arrived', () => lostMails(box).length > 0)
    await until('the channel knows', async () => (await channelOf(next, 'email'))?.depth === 0)
    await next.stop()
    expect(lostMails(box)).toHaveLength(1)
  })
})

describe('a restart', () => {
  it('goes on with what the detectors knew: nothing is sent twice, and what they knew is shown at once', async () => {
    const box = await mailbox()
    const { agent, startAgent } = await withLostGpu(mailVariables(box.port))
    await until('it arrived', () => lostMails(box).length > 0)
    const before = await lostAlert(agent)
    await agent.stop()
    const next = await startAgent(agent.logDir)
    const { findings } = await next.get<{ findings: { fingerprint: string }[] }>('/api/v1/findings')
    expect(findings.map(({ fingerprint }) => fingerprint)).toContain(before?.fingerprint)
    await until('the alert is known', async () => (await next.get<AlertList>('/api/v1/alerts')).alerts.length > 0)
    await next.stop()
    expect(lostMails(box)).toHaveLength(1)
  })

  it('knows a card that is lost by the name it had, though its driver does not report it: one row, one alert, one mail', async () => {
    const box = await mailbox()
    const { agent, startAgent } = await withLostGpu(mailVariables(box.port))
    await until('it arrived', () => lostMails(box).length > 0)
    const before = await lostAlert(agent)
    await agent.stop('SIGKILL')
    const next = await startAgent(agent.logDir)
    const lost = await until('the card is seen lost', async () => {
      const { gpus } = await next.get<GpuList>('/api/v1/gpus')
      return gpus.every(({ sample }) => sample !== null) && gpus.some(({ sample }) => sample?.state === 'lost') ? gpus : null
    })
    expect(lost.map(({ info, sample }) => [info.id, info.label, sample?.state])).toEqual([
      ['GPU-fa4e0000-0000-4000-8000-000000000000', '0', 'ok'],
      ['GPU-fa4e0000-0000-4000-8000-000000000001', '1', 'lost'],
    ])
    const { alerts } = await next.get<AlertList>('/api/v1/alerts')
    expect(alerts.filter(({ fingerprint }) => fingerprint.startsWith('gpu_lost')).map(({ fingerprint }) => fingerprint)).toEqual([
      before?.fingerprint,
    ])
    await next.stop()
    expect(lostMails(box)).toHaveLength(1)
  })

  it('ends the findings about a run that ended after the detectors were last saved', async () => {
    const agent = await start(['--source', 'demo', '--interval', '0.2'], {})
    const post = (path: string, body: object) =>
      fetch(`${agent.url}/api/v1/runs${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    await post('', { id: 'r1', name: 'demo' })
    await fetch(`${agent.url}/api/v1/runs/r1/steps`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/x-ndjson' } },
      body: `{"seq":1,"step":1,"t":${Date.now()},"loss":NaN}`,
    })
    const saved = join(agent.logDir, 'detectors-demo.json')
    const before = await until('the detectors are saved', () => {
      const text = existsSync(saved) ? readFileSync(saved, 'utf8') : ''
      return text.includes('loss_nan|run=r1') ? text : null
    })
    await post('/r1/end', { outcome: 'success' })
    await agent.stop('SIGKILL')
    writeFileSync(saved, before)
    const next = await start(['--source', 'demo', '--interval', '0.2'], {}, agent.logDir)
    await until('it is over', async () => {
      const { findings } = await next.get<{ findings: { fingerprint: string }[] }>('/api/v1/findings')
      return !findings.some(({ fingerprint }) => fingerprint === 'loss_nan|run=r1')
    })
    await next.stop()
  })

  it('of a NaN in steps that arrive after the end of their run is delivered once, and leaves the run over', async () => {
    const box = await mailbox()
    const script = fakeNvmlScript({ gpus: 1 })
    const env = { GPUWARDEN_NVML: library, ...script.env, ...mailVariables(box.port), GPUWARDEN_ALERTS_GROUP_SECONDS: '0' }
    const agent = await start(['--source', 'nvidia', '--interval', '0.2'], env)
    const post = (path: string, body: string, type = 'application/json') =>
      fetch(`${agent.url}/api/v1/${path}`, { method: 'POST', headers: { 'content-type': type }, body })
    const from = Date.now() - 60_000
    const steps = (first: number, loss: string) =>
      Array.from(
        { length: 20 },
        (_, index) => `{"seq":${first + index},"step":${first + index},"t":${from + (first + index) * 1000},"loss":${loss}}`,
      )
    const send = (lines: string[]) => post('runs/late/steps', lines.join('\n'), 'application/x-ndjson')
    await post('runs', JSON.stringify({ id: 'late', name: 'late run', started_at: from }))
    await send(steps(1, '1.5'))
    await post('runs/late/end', JSON.stringify({ outcome: 'failed', message: 'RuntimeError: boom' }))
    await until('its death is delivered', () => box.mails.some(({ text }) => text.includes('late run died')))
    expect((await send(steps(21, '"NaN"'))).status).toBe(200)
    const nans = () => box.mails.filter(({ text }) => /^X-Gpuwarden-Detector: .*loss_nan/m.test(text))
    await until('the NaN is delivered', () => nans().length > 0)
    expect(nans()[0]?.text).toContain('NaN at step 21')
    await send(steps(41, '"NaN"'))
    const { runs } = await agent.get<{ runs: { id: string; outcome: string; endedAt: number | null }[] }>('/api/v1/runs')
    expect(runs.find(({ id }) => id === 'late')).toMatchObject({ outcome: 'failed', endedAt: expect.any(Number) })
    await agent.stop()
    expect(nans().filter(({ subject }) => /CRITICAL/.test(subject))).toHaveLength(1)
    expect(box.mails.filter(({ text }) => /stall|straggler/.test(text))).toEqual([])
  })

  it.each([
    { what: 'a presumed death', end: { outcome: 'killed', endIsPresumed: true, message: 'its process (7) is gone' } },
    { what: 'a reported failure', end: { outcome: 'failed', endIsPresumed: false, message: 'RuntimeError: boom' } },
  ])('of $what that was stored in the moment of a kill is delivered, once', async ({ end }) => {
    const box = await mailbox()
    const script = fakeNvmlScript({ gpus: 1 })
    const env = { GPUWARDEN_NVML: library, ...script.env, ...mailVariables(box.port), GPUWARDEN_ALERTS_GROUP_SECONDS: '0' }
    const startAgent = (dir?: string) => start(['--source', 'nvidia', '--interval', '0.2'], env, dir)
    const agent = await startAgent()
    for (const id of ['known', 'new'])
      await fetch(`${agent.url}/api/v1/runs`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
        body: JSON.stringify({ id, name: `${id} run` }),
      })
    await agent.stop()
    // The detectors have seen one of them running, and know nothing of the other.
    const saved = join(agent.logDir, 'detectors.json')
    const state = JSON.parse(readFileSync(saved, 'utf8')) as { seenRuns: [string, string][] }
    expect(state.seenRuns.map(([id]) => id)).toEqual(['known', 'new'])
    writeFileSync(saved, JSON.stringify({ ...state, seenRuns: state.seenRuns.slice(0, 1) }))
    for (const id of ['known', 'new']) {
      const file = join(agent.logDir, 'runs', `${id}.run.json`)
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...end, endedAt: Date.now() }))
    }
    const deaths = () => ['known', 'new'].map((id) => box.mails.filter(({ text }) => text.includes(`${id} run died`)).length)
    const next = await startAgent(agent.logDir)
    await until('both are delivered', () => deaths().every((count) => count > 0))
    await next.stop('SIGKILL')
    const last = await startAgent(agent.logDir)
    await until('it is ready', async () => (await fetch(`${last.url}/readyz`)).ok)
    await last.stop()
    expect(deaths()).toEqual([1, 1])
  })

  it('begins anew, and says so, when what they knew is damaged', async () => {
    const logDir = temporaryFolder()
    writeFileSync(join(logDir, 'detectors-demo.json'), '{"version":1,"det')
    const agent = await start(['--source', 'demo', '--interval', '0.2'], {}, logDir)
    await until('it is ready', async () => (await fetch(`${agent.url}/readyz`)).ok)
    const { code, stderr } = await agent.stop()
    expect([code, stderr]).toEqual([0, expect.stringContaining('the saved state of the detectors is damaged')])
    const names = readdirSync(logDir).filter((name) => name.startsWith('detectors'))
    expect(names).toEqual([expect.stringMatching(/^detectors-demo-.*\.corrupt$/), 'detectors-demo.json'])
  })
})

describe('gpuwarden alerts', () => {
  it('lists, silences, acknowledges and tests by the running agent', { timeout: 120_000 }, async () => {
    const box = await mailbox()
    const { agent } = await withLostGpu(mailVariables(box.port))
    const port = new URL(agent.url).port
    const alerts = (...args: string[]) => run(['alerts', ...args, '--port', port])
    const listed = await alerts()
    expect([listed.code, listed.stderr]).toEqual([0, ''])
    expect(listed.stdout).toMatch(/^1 alert open:\nSTATE +SEVERITY +SINCE +FINGERPRINT +MESSAGE\nfiring +critical +.*gpu_lost\|gpu=/)
    const acknowledged = await alerts('ack', 'gpu_lost', '--for', '30m')
    expect(acknowledged.stdout).toMatch(/^Acknowledged until /)
    expect((await lostAlert(agent))?.mutedBy).toBe('acknowledged')
    expect((await alerts('unack', 'gpu_lost')).stdout).toMatch(/^No longer acknowledged: /)
    expect((await lostAlert(agent))?.mutedBy).toBe(null)
    const again = await alerts('unack', 'gpu_lost')
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('no open, acknowledged alert')])
    expect((await alerts('ack', 'nothing')).stderr).toContain('no open alert starts with "nothing"')
    const silenced = JSON.parse((await alerts('silence', 'gpu=1', 'severity=critical', '--comment', 'swap', '--json')).stdout)
    expect(silenced).toMatchObject({ comment: 'swap', matchers: [{ name: 'gpu', operator: '=', value: '1' }, { name: 'severity' }] })
    expect((await lostAlert(agent))?.mutedBy).toBe('silence')
    expect((await alerts('silence')).stdout).toContain(silenced.id)
    expect((await alerts('unsilence', silenced.id)).code).toBe(0)
    expect((await alerts('unsilence', silenced.id)).stderr).toContain(`no silence "${silenced.id}"`)
    expect((await alerts('history')).stdout).toBe('No past alerts.\n')
    const tested = await alerts('test', 'email')
    expect([tested.code, tested.stderr]).toEqual([0, ''])
    expect(tested.stdout).toMatch(/^Sent by the agent at http.*\nemail: taken\n {2}127\.0\.0\.1:\d+ answered: 250 kept as 4711/)
    expect(box.mails.at(-1)?.subject).toMatch(/^\[gpuwarden\] TEST/)
    const all = await alerts('test')
    expect([all.code, all.stdout]).toEqual([
      0,
      expect.stringMatching(/email: taken[\s\S]*webpush: left out\n {2}no browser has subscribed\n$/),
    ])
    const push = await alerts('test', 'webpush')
    expect([push.code, push.stdout]).toEqual([1, expect.stringMatching(/webpush: REFUSED\n {2}no browser has subscribed\n$/)])
    const unknown = await alerts('test', 'pigeon')
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('There is no channel "pigeon"')])
  })

  it('test shows the answer of the server without an agent, too, and ends with 1 when it is refused', async () => {
    const box = await mailbox({ password: PASSWORD })
    const test = (password: string) =>
      run(['alerts', 'test', 'email', '--port', '1'], mailVariables(box.port, { EMAIL_PASSWORD: password }))
    const refused = await test('wrong-9876543210')
    expect(refused.code).toBe(1)
    expect(refused.stdout).toMatch(/^No agent runs: sent from here\.\nemail: REFUSED\n.*535.*bad credentials, says the server/)
    expect(refused.stdout + refused.stderr).not.toContain('wrong-9876543210')
    expect(refused.stdout).not.toContain(Buffer.from('\0gpu@example.org\0wrong-9876543210').toString('base64'))
    const taken = await test(PASSWORD)
    expect([taken.code, taken.stdout]).toEqual([0, expect.stringContaining('email: taken')])
    expect(box.mails).toHaveLength(1)
  })

  it('test says what cannot be reached, or is no channel', async () => {
    const port = await freePort()
    const unreachable = await run(['alerts', 'test', '--port', '1'], mailVariables(port))
    expect([unreachable.code, unreachable.stdout]).toEqual([1, expect.stringMatching(/email: REFUSED\n.*cannot be reached.*ECONNREFUSED/)])
    const none = await run(['alerts', 'test', '--port', '1'])
    expect([none.code, none.stdout]).toEqual([1, expect.stringMatching(/webpush: left out\n.*\nNo channel would deliver an alert/)])
    const unknown = await run(['alerts', 'test', 'pigeon', '--port', '1'])
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('there is no channel "pigeon"')])
  })

  it.each([
    [['alerts', '--port', '1'], 1, /no gpuwarden agent answers at http:\/\/127\.0\.0\.1:1 /],
    [['alerts', 'frobnicate'], 2, /expected one of list, history, silence, unsilence, ack, unack, test/],
    [['alerts', 'silence', 'gpu=0', '--for', 'ever', '--port', '1'], 2, /--for: expected a duration/],
    [['alerts', 'unsilence', '--port', '1'], 2, /expected the id of a silence/],
    [['alerts', 'ack', '--port', '1'], 2, /expected the fingerprint of an alert/],
    [['alerts', 'ack', 'thermal', '--for', '-1h', '--port', '1'], 2, /--for: expected a duration/],
    [['alerts', 'unack', '--port', '1'], 2, /expected the fingerprint of an alert/],
  ] as [string[], number, RegExp][])('%j ends with %i', async (args, code, message) => {
    const result = await run(args)
    expect([result.code, result.stderr]).toEqual([code, expect.stringMatching(message)])
  })

  it('says so when something else answers', async () => {
    const server = createServer((_request, response) => response.end('<html>hello')).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    onTestFinished(() => void server.close())
    const result = await run(['alerts', '--port', String((server.address() as AddressInfo).port)])
    expect([result.code, result.stderr]).toEqual([1, expect.stringContaining('is not a gpuwarden agent')])
  })
})

describe('a wrong configuration', () => {
  it.each([
    ['alerts:\n  routes:\n    - channels: [pager]\n', /alerts\.routes\[0\]: there is no channel "pager"/],
    ['channels:\n  hook: { type: webhook, url: "not-a-url-secret" }\n', /channels\.hook\.url: expected an address/],
    ['channels:\n  hook: { type: pigeon }\n', /hook\.type: expected one of email, slack/],
    ['email: { server: mail.example.org, to: [not an address] }\n', /email\.to/],
    ['detectors: { disabled: [crystal_ball] }\n', /detectors\.disabled: there is no detector "crystal_ball"/],
  ])('%j stops the start and names the key', async (text, message) => {
    const result = await run(['monitor', '--source', 'demo', '--port', '0', '--config', yaml(text)])
    expect(result.stderr).toMatch(message)
    expect(result.stderr).not.toContain('not-a-url-secret')
    expect(result.code).toBe(2)
  })

  it('of one channel is reported, and watching goes on', async () => {
    const file = yaml('channels:\n  team: { type: slack, url: "env:NO_SUCH_VARIABLE" }\nalerts:\n  routes:\n    - channels: [team]\n')
    const agent = await start(['--source', 'demo', '--interval', '0.2', '--config', file])
    expect((await channelOf(agent, 'team'))?.problem).toContain('NO_SUCH_VARIABLE')
    const tested = await run(['alerts', 'test', 'team', '--port', new URL(agent.url).port])
    expect([tested.code, tested.stdout]).toEqual([1, expect.stringContaining('NO_SUCH_VARIABLE')])
    await until('it is ready', async () => (await fetch(`${agent.url}/readyz`)).ok)
    const { stderr } = await agent.stop()
    expect(stderr).toContain('channel team is not usable')
  })

  it('is shown by config without anything secret in it', async () => {
    const secret = 'https://hooks.example.org/T000/B000/XyZsEcReT'
    const heartbeat = 'https://hc.example.org/5f0c-secret'
    const file = yaml(`channels:\n  team: { type: slack, url: "${secret}" }\nalerts: { heartbeat_url: "${heartbeat}" }\n`)
    const shown = await run(['config', '--config', file], { EMAIL_PASSWORD: PASSWORD })
    expect(shown.code).toBe(0)
    expect(shown.stdout).toContain('channels: {"team":{"type":"slack","url":"https://hooks.example.org/********"}}')
    for (const hidden of ['XyZsEcReT', '5f0c-secret', PASSWORD]) expect(shown.stdout).not.toContain(hidden)
    const wrong = await run(['config', '--config', yaml('channels:\n  team: { type: slack, color: red }\n')])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('channels.team')])
  })
})

describe('without alerts', () => {
  it('every route says that they are switched off, and nothing is written', async () => {
    const agent = await start(['--source', 'demo', '--interval', '0.2'], { GPUWARDEN_ALERTS_ENABLED: 'false' })
    const answer = await fetch(`${agent.url}/api/v1/alerts`)
    expect([answer.status, await answer.json()]).toMatchObject([503, { error: { code: 'unavailable' } }])
    expect(await agent.text('/metrics')).not.toContain('gpuwarden_alerts')
    const listed = await run(['alerts', '--port', new URL(agent.url).port])
    expect([listed.code, listed.stderr]).toEqual([1, expect.stringContaining('Alerts are switched off')])
  })
})
