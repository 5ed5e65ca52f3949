/** The web UI when things go wrong: the agent away, the driver hung, a GPU lost, a token required, hostile names. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from '../../fake-nvml/index.ts'
import { RunningAgent, temporaryFolder, until } from '../../program.ts'
import { freePort } from '../servers.ts'
import { openBrowser, Visit, whyNoBrowser } from './browser.ts'
import { postTraining } from './training-post.ts'

const EVIL = '<img src=x onerror="window.wasHit=1">'

describe.skipIf(whyNoBrowser !== '')(`the web UI when something fails${whyNoBrowser}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  async function start(args: readonly string[], env: NodeJS.ProcessEnv = {}, logDir?: string): Promise<RunningAgent> {
    const agent = await RunningAgent.start(args, env, logDir)
    onTestFinished(async () => {
      await agent.stop('SIGKILL')
    })
    return agent
  }

  async function visitTo(agent: RunningAgent, hash = ''): Promise<Visit> {
    const visit = await Visit.open(browser, agent.url, hash)
    onTestFinished(() => visit.close())
    return visit
  }

  it('says at once that the agent is away, shows nothing as live, and fills the gap when it is back', { timeout: 120_000 }, async () => {
    const port = await freePort()
    const logDir = temporaryFolder()
    const args = ['--source', 'demo', '--port', String(port)]
    const agent = await RunningAgent.start(args, {}, logDir)
    const visit = await visitTo(agent, '#/gpu/0')
    await until('it is live', async () => (await visit.page.innerText('.linkstate')).includes('live'))
    await until('its figures are shown', async () => (await visit.page.locator('.gpu-now').count()) === 1)
    await visit.page.waitForTimeout(6000)
    await agent.stop('SIGKILL')
    await until('the loss is said', async () => (await visit.page.innerText('.banners')).includes('No connection to the agent'))
    expect(await visit.page.innerText('main')).toContain('No connection to the agent')
    expect(await visit.page.locator('.gpu-now.stale').count()).toBe(1)
    await visit.go('#/settings')
    await until('a page that is not here yet is said to come', async () =>
      (await visit.page.innerText('main')).includes('the agent does not answer'),
    )
    await visit.go('#/gpu/0')
    await visit.page.waitForTimeout(3000)
    await start(args, {}, logDir)
    await until('it is live again', async () => (await visit.page.innerText('.linkstate')).includes('live'), 60_000)
    expect(await visit.page.innerText('.banners')).not.toContain('No connection')
    // Readings from before the kill are there again, from the log, and the time between is a gap in them.
    const history = () =>
      fetch(`http://127.0.0.1:${port}/api/v1/history?gpu=0&field=powerWatts`).then(
        (answer) => answer.json() as Promise<{ data: (number | null)[][] }>,
      )
    await until('the gap is one', async () => (await history()).data[1]?.includes(null))
    expect((await history()).data[1]?.length).toBeGreaterThan(6)
    await until('charts are drawn', async () => (await visit.page.locator('.chart canvas').count()) >= 4)
  })

  it('says that the driver is not responding, since when, and recovers by itself', { timeout: 120_000 }, async () => {
    const script = fakeNvmlScript({ gpus: 2 })
    const agent = await start(['--source', 'nvidia', '--interval', '0.2', '--deadline', '1'], {
      GPUWARDEN_NVML: buildFakeNvml(),
      GPUWARDEN_RESTART_FIRST: '0.2',
      GPUWARDEN_RESTART_MOST: '0.5',
      ...script.env,
    })
    const visit = await visitTo(agent)
    await until('both are there', async () => (await visit.page.locator('a[href^="#/gpu/"]').count()) >= 2)
    expect(await visit.page.innerText('.banners')).not.toContain('SIMULATED')
    script.update({ hang: 'nvmlDeviceGetMemoryInfo_v2' })
    await until('the hang is said', async () => /not responding/.test(await visit.page.innerText('.banners')))
    await until('the cards say it too', async () => /not responding/i.test(await visit.page.innerText('main')))
    await until('the age is said', async () => /\d s old/.test(await visit.page.innerText('.linkstate.old')))
    await visit.go('#/gpu/0')
    await until('nothing is said to be well', async () =>
      (await visit.page.innerText('main')).includes('Not known without current readings'),
    )
    await visit.go('#/memory')
    await until('no forecast is made', async () => (await visit.page.innerText('main')).includes('No forecast without current readings'))
    expect(await visit.page.innerText('main')).not.toContain('no OOM ahead')
    script.update({ hang: '' })
    await until('all is well again', async () => !/not responding/.test(await visit.page.innerText('.banners')), 60_000)
    expect(visit.faults).toEqual([])
  })

  it('says once that alerts are switched off, and what is found is shown all the same', { timeout: 120_000 }, async () => {
    const agent = await start(['--source', 'demo', '--demo-scenario', 'intruder'], {
      GPUWARDEN_ALERTS_ENABLED: 'false',
      GPUWARDEN_LOG_ENABLED: 'false',
    })
    const visit = await visitTo(agent, '#/alerts')
    await until('it is said', async () => (await visit.page.innerText('main')).includes('Alerts are off'))
    expect((await visit.page.innerText('main')).split('Alerts are switched off').length).toBe(2)
    await visit.go('#/')
    await until('the finding is there', async () => /worker of mallory/.test(await visit.page.innerText('main')), 60_000)
  })

  it('keeps the card of a lost GPU, marked, and the others live', { timeout: 120_000 }, async () => {
    const script = fakeNvmlScript({ gpus: 3 })
    const agent = await start(['--source', 'nvidia', '--interval', '0.2'], { GPUWARDEN_NVML: buildFakeNvml(), ...script.env })
    const visit = await visitTo(agent)
    await until('all are there', async () => (await visit.page.locator('a[href^="#/gpu/"]').count()) >= 3)
    script.update({ lost: [1] })
    await until('the loss is said', async () => /lost/i.test(await visit.page.innerText('main')))
    expect(await visit.page.locator('a[href^="#/gpu/"]').count()).toBeGreaterThanOrEqual(3)
    await visit.go('#/gpu/1')
    await until('its page says so', async () => /fell off the bus/.test(await visit.page.innerText('main')))
    await visit.go('#/gpu/0')
    await until('its neighbour is fine', async () => !/fell off the bus/.test(await visit.page.innerText('.page-head + *')))
    expect(visit.faults).toEqual([])
  })

  it('asks for the token, keeps no secret in the page, limits the tries, and lets out again', { timeout: 120_000 }, async () => {
    const token = 'correct-horse-battery'
    const agent = await start(['--source', 'demo'], { GPUWARDEN_SERVER_TOKEN: token })
    const visit = await visitTo(agent, '#/processes')
    await until('the login is shown', async () => (await visit.page.locator('input[name=token]').count()) === 1)
    expect(await visit.page.innerText('body')).not.toContain('GPU 0')
    expect(await visit.barriers()).toEqual([])
    await visit.page.fill('input[name=token]', 'wrong-token-1')
    await visit.page.keyboard.press('Enter')
    await until('it is refused', async () => (await visit.page.innerText('body')).includes('This token is wrong'))
    await visit.page.fill('input[name=token]', token)
    await visit.page.keyboard.press('Enter')
    await until('the page that was asked for is shown', async () => /python/.test(await visit.page.innerText('main')))
    const [cookie] = await visit.page.context().cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    expect(cookie?.value).not.toContain(token)
    expect(await visit.page.evaluate(() => document.cookie)).toBe('')
    await visit.page.reload()
    await until('a reload stays in', async () => /python/.test(await visit.page.innerText('main')))
    await visit.page.click('text=Sign out')
    await until('the login is back', async () => (await visit.page.locator('input[name=token]').count()) === 1)
    for (let tries = 0; tries < 30; tries++) {
      await visit.page.fill('input[name=token]', `guess-${tries}-of-many`)
      await visit.page.keyboard.press('Enter')
      await visit.page.waitForTimeout(50)
    }
    await until('guessing is slowed down', async () => /Try again in \d+ s/.test(await visit.page.innerText('body')))
  })

  it('shows hostile names as text', { timeout: 120_000 }, async () => {
    const folder = temporaryFolder()
    mkdirSync(folder, { recursive: true })
    const at = Date.now() - 60_000
    const lines = Array.from({ length: 60 }, (_, index) =>
      JSON.stringify({
        timestamp: new Date(at + index * 1000).toISOString(),
        gpu_index: 0,
        gpu_uuid: 'GPU-evil',
        gpu_name: EVIL,
        utilization_percent: 50,
        memory_used_mb: 1000,
        memory_total_mb: 24_576,
        memory_percent: 4,
        temperature_celsius: 40,
        power_draw_watts: 100,
        fan_speed_percent: null,
        processes: [{ pid: 4242, user: EVIL, name: EVIL, command: [EVIL], memory_used_mb: 900, type: 'compute' }],
      }),
    )
    writeFileSync(join(folder, 'gpu_metrics_20260101_000000.jsonl.gz'), gzipSync(`${lines.join('\n')}\n`))
    const agent = await start(['--source', `replay:${folder}`, '--speed', '60'])
    await postTraining(agent.url, 'evil', 1, 20, EVIL)
    const visit = await visitTo(agent)
    for (const hash of [
      '#/',
      '#/gpu/0',
      '#/memory',
      '#/processes',
      '#/training',
      '#/training/evil',
      '#/alerts',
      `#/silence?fingerprint=${encodeURIComponent(EVIL)}`,
    ]) {
      await visit.go(hash)
      await visit.page.waitForTimeout(700)
      expect(await visit.page.evaluate(() => (globalThis as { wasHit?: number }).wasHit ?? null), hash).toBe(null)
      expect(await visit.page.locator('img[src="x"]').count(), hash).toBe(0)
    }
    await visit.go('#/training')
    await until('the name is there, as text', async () => (await visit.page.innerText('main')).includes(EVIL))
    expect(visit.faults).toEqual([])
  })

  it('closes the stream while nobody looks', { timeout: 120_000 }, async () => {
    const agent = await start(['--source', 'demo'])
    const visit = await visitTo(agent)
    const clients = async () => (await agent.get<{ stream: { clients: number } }>('/api/v1/health')).stream.clients
    await until('the page listens', async () => (await clients()) === 1)
    const hide = (isHidden: boolean) =>
      visit.page.evaluate((hidden) => {
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden })
        document.dispatchEvent(new Event('visibilitychange'))
      }, isHidden)
    await hide(true)
    await until('it has let go', async () => (await clients()) === 0, 40_000)
    const asked: string[] = []
    visit.page.on('request', (request) => asked.push(request.url()))
    await visit.page.waitForTimeout(6000)
    expect(asked, 'a page that nobody sees asks for nothing').toEqual([])
    await hide(false)
    await until('it listens again', async () => (await clients()) === 1)
    await until('it is live again', async () => (await visit.page.innerText('.linkstate')).includes('live'))
  })
})
