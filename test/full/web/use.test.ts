/** What people do on the web UI: zoom, export, acknowledge, silence, test a channel, compare, kill. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from '../../fake-nvml/index.ts'
import { RunningAgent, temporaryFolder, until } from '../../program.ts'
import { openBrowser, Visit, whyNoBrowser } from './browser.ts'
import { postTraining } from './training-post.ts'

describe.skipIf(whyNoBrowser !== '')(`on the web UI${whyNoBrowser}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  async function open(args: readonly string[], hash: string, env: NodeJS.ProcessEnv = {}) {
    const agent = await RunningAgent.start(args, env)
    const visit = await Visit.open(browser, agent.url, hash)
    onTestFinished(async () => {
      await visit.close()
      await agent.stop('SIGKILL')
    })
    return { agent, visit, page: visit.page }
  }

  it('a drag zooms all charts and is in the address; a double click goes back', { timeout: 120_000 }, async () => {
    const { visit, page } = await open(['--source', 'demo'], '#/gpu/0')
    await until('charts are drawn', async () => (await page.locator('.chart .u-over').count()) >= 4)
    await page.waitForTimeout(4000)
    const box = await page.locator('.chart .u-over').first().boundingBox()
    if (!box) throw new Error('there is no chart')
    await page.mouse.move(box.x + box.width * 0.9, box.y + 40)
    await until('the crosshair is in every chart', async () => {
      const shown = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>('.chart .u-cursor-x')].map((line) => line.style.transform),
      )
      return shown.length >= 4 && new Set(shown.map((text) => text.replace(/px.*/, ''))).size <= 2
    })
    await page.mouse.move(box.x + box.width * 0.7, box.y + 40)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.998, box.y + 40, { steps: 5 })
    await page.mouse.up()
    await until('the span is in the address', async () => /from=\d+&to=\d+/.test(page.url()))
    const [, from, to] = /from=(\d+)&to=(\d+)/.exec(page.url()) ?? []
    expect(Number(to) - Number(from)).toBeLessThan(0.35 * 300_000)
    await page.waitForTimeout(800)
    await page.locator('.chart .u-over').first().dblclick()
    await until('it is back', async () => /range=5m/.test(page.url()))
    await page.locator('.chart-box').first().focus()
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('+')
    await until('keys zoom too', async () => /from=\d+/.test(page.url()))
    expect(visit.faults).toEqual([])
  })

  it('a chart is saved as CSV and as PNG', { timeout: 120_000 }, async () => {
    const { page } = await open(['--source', 'demo'], '#/gpu/0')
    await until('charts are drawn', async () => (await page.locator('.chart .u-over').count()) >= 4)
    await page.waitForTimeout(3000)
    const chart = page.locator('.chart', { hasText: 'Power' })
    const [csv] = await Promise.all([page.waitForEvent('download'), chart.getByText('CSV').click()])
    const text = readFileSync(await csv.path(), 'utf8')
    expect(csv.suggestedFilename()).toMatch(/^gpuwarden-power-.*\.csv$/)
    expect(text).toMatch(/^time,draw\r\n\d{4}-\d\d-\d\dT[\d:.]+Z,\d/)
    const [png] = await Promise.all([page.waitForEvent('download'), chart.getByText('PNG').click()])
    expect(
      readFileSync(await png.path())
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG')
  })

  it('an hour comes from the log, averaged and said so; a double click goes back to it', { timeout: 120_000 }, async () => {
    const logDir = temporaryFolder()
    const lines = Array.from({ length: 720 }, (_, index) => {
      const timestamp = new Date(Date.now() - (720 - index) * 10_000).toISOString()
      const readings = { utilization_percent: (index * 7) % 100, power_draw_watts: 300, memory_used_mb: 1000, memory_total_mb: 81_559 }
      return JSON.stringify({
        timestamp,
        gpu_index: 0,
        gpu_uuid: 'GPU-SIM-0000',
        gpu_name: 'Simulated H100 80GB',
        simulated: true,
        ...readings,
      })
    })
    writeFileSync(join(logDir, 'gpu_metrics_20260101_000000.jsonl'), `${lines.join('\n')}\n`)
    const agent = await RunningAgent.start(['--source', 'demo'], {}, logDir)
    const visit = await Visit.open(browser, agent.url, '#/gpu/0?range=1h')
    onTestFinished(async () => {
      await visit.close()
      await agent.stop('SIGKILL')
    })
    const { page } = visit
    await until('averages are said to be averages', async () => /Averages of (10|20|30) s; the band/.test(await page.innerText('main')))
    const box = await page.locator('.chart .u-over').first().boundingBox()
    if (!box) throw new Error('there is no chart')
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 5 })
    await page.mouse.up()
    await until('it is zoomed', async () => /from=\d+&to=\d+/.test(page.url()))
    await page.waitForTimeout(800)
    await page.locator('.chart .u-over').first().dblclick()
    await until('the hour is back', async () => /range=1h/.test(page.url()))
    expect(visit.faults).toEqual([])
  })

  it('ranges are in the address, and nothing is invented for a time without readings', { timeout: 120_000 }, async () => {
    const { page, visit } = await open(['--source', 'demo'], '#/gpu/0')
    await until('charts are drawn', async () => (await page.locator('.chart .u-over').count()) >= 4)
    await page.getByRole('button', { name: '24 h' }).click()
    await until('it is in the address', async () => page.url().includes('range=24h'))
    await page.getByRole('button', { name: 'Custom…' }).click()
    await page.locator('input[name=from]').fill('2026-01-02T10:00')
    await page.locator('input[name=to]').fill('2026-01-02T09:00')
    await page.getByRole('button', { name: 'Show' }).click()
    await until('nonsense is refused', async () => (await page.innerText('main')).includes('The end must be after the beginning'))
    await page.locator('input[name=to]').fill('2026-01-02T11:00')
    await page.getByRole('button', { name: 'Show' }).click()
    await until('nothing is invented for a time without readings', async () =>
      (await page.innerText('main')).includes('no readings for this time range'),
    )
    expect(visit.faults).toEqual([])
  })

  it('an alert is acknowledged and silenced, and a channel is tested with the server’s own answer', { timeout: 120_000 }, async () => {
    const received: string[] = []
    const hook = createServer((request, response) => {
      request.on('data', (data) => received.push(String(data)))
      request.on('end', () => response.writeHead(418, { 'content-type': 'text/plain' }).end('short and stout'))
    })
    hook.listen(0, '127.0.0.1')
    await once(hook, 'listening')
    onTestFinished(() => void hook.close())
    const address = hook.address()
    const port = typeof address === 'object' ? address?.port : 0
    const config = join(temporaryFolder(), 'gpuwarden.yaml')
    writeFileSync(config, `channels:\n  hook:\n    type: webhook\n    url: http://127.0.0.1:${port}/alerts\n`)
    const { page, visit, agent } = await open(['--source', 'demo', '--demo-scenario', 'intruder', '--config', config], '#/alerts')
    await until('there is an alert', async () => (await page.locator('.alert').count()) > 0, 60_000)
    await page.getByRole('button', { name: 'Acknowledge…' }).first().click()
    expect(await visit.barriers()).toEqual([])
    await page.locator('dialog input[name=by]').fill('ada')
    await page.locator('dialog').getByRole('button', { name: 'Acknowledge' }).click()
    await until('it is acknowledged', async () => (await page.innerText('main')).includes('acknowledged by ada'))
    const { alerts } = await agent.get<{ alerts: { fingerprint: string; acknowledged: { by: string } | null }[] }>('/api/v1/alerts')
    expect(alerts.some((one) => one.acknowledged?.by === 'ada')).toBe(true)
    await page.getByRole('link', { name: 'Silence…' }).first().click()
    await until('the form is there', async () => (await page.locator('textarea').inputValue()).startsWith('fingerprint='))
    await page.locator('input[name=comment]').fill('known')
    await page.getByRole('button', { name: 'Silence', exact: true }).click()
    await until('it is silenced', async () => /until .* left/.test(await page.innerText('main')))
    await page.getByRole('button', { name: 'End now' }).click()
    await until('the silence is over', async () => (await page.innerText('main')).includes('Nothing is silenced'))
    await page.locator('tr', { hasText: 'hook' }).getByRole('button', { name: 'Send a test' }).click()
    await until('the answer is shown', async () => /Not delivered: .*418/.test(await page.innerText('main')))
    expect(received.join('')).toContain('test')
    expect(visit.faults.filter((text) => !text.includes('status of 4'))).toEqual([])
  })

  it('what others do about an alert is seen at once, without asking for it again and again', { timeout: 120_000 }, async () => {
    const { page, visit, agent } = await open(['--source', 'demo', '--demo-scenario', 'intruder'], '#/alerts', {
      GPUWARDEN_ALERTS_SIMULATED: 'true',
    })
    await until('an alert fires', async () => (await page.locator('.alert.firing').count()) > 0, 60_000)
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    const json = { 'content-type': 'application/json' }
    const body = JSON.stringify({ matchers: ['detector=intruder'], seconds: 600, by: 'bob', comment: 'a guest' })
    const made = (await (await fetch(`${agent.url}/api/v1/silences`, { method: 'POST', headers: json, body })).json()) as { id: string }
    await until('it is shown as silenced', async () => (await page.locator('.alert .badge', { hasText: 'silenced' }).count()) > 0, 20_000)
    await until('the silence is listed', async () => (await page.innerText('main')).includes('a guest'), 20_000)
    await fetch(`${agent.url}/api/v1/silences/${made.id}`, { method: 'DELETE' })
    await until(
      'it is silenced no longer',
      async () => (await page.locator('.alert .badge', { hasText: 'silenced' }).count()) === 0,
      20_000,
    )
    await until('nor listed', async () => (await page.innerText('main')).includes('Nothing is silenced'), 20_000)
    expect(asked.filter((path) => path === '/api/v1/alerts').length).toBeLessThanOrEqual(1)
    expect(visit.faults).toEqual([])
  })

  it('an address that leads nowhere says so and shows the way out; the skip button leads to the content', { timeout: 60_000 }, async () => {
    const { page, visit } = await open(['--source', 'demo', '--demo-gpus', '1'], '#/nonsense')
    await until('it says so', async () => (await page.innerText('main')).includes('There is no such page'))
    expect(await visit.barriers()).toEqual([])
    await page.goto(`${page.url().split('#')[0]}#/constructor`)
    await until('it says so of any other', async () => (await page.innerText('main')).includes('#/constructor'))
    await page.locator('main').getByRole('link', { name: 'Memory' }).click()
    await until('the page is there', async () => (await page.locator('main h1').innerText()).startsWith('Memory'))
    await page.getByRole('button', { name: 'Skip to content' }).focus()
    await page.keyboard.press('Enter')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main')
    expect(page.url()).toMatch(/#\/memory/)
    expect(visit.faults).toEqual([])
  })

  it('a single GPU has the whole width, with a picture that can be read', { timeout: 60_000 }, async () => {
    const { page, visit } = await open(['--source', 'demo', '--demo-gpus', '1'], '#/')
    await page.locator('.large-picture canvas').waitFor()
    const widths = await page.evaluate(() =>
      ['.overview-gpus', '.gpu-card', '.large-picture canvas'].map(
        (name) => document.querySelector(name)?.getBoundingClientRect().width ?? 0,
      ),
    )
    const [room = 0, card = 0, picture = 0] = widths
    expect(card).toBeGreaterThan(room * 0.98)
    expect(picture).toBeGreaterThan(card / 3)
    expect(await visit.barriers()).toEqual([])
    expect(visit.faults).toEqual([])
  })

  it('a push message becomes a notification that leads to the alerts', { timeout: 120_000 }, async () => {
    const { page, agent } = await open(['--source', 'demo'], '#/alerts')
    await page.context().grantPermissions(['notifications'], { origin: agent.url })
    await page.evaluate(async () => {
      await navigator.serviceWorker.ready
    })
    const client = await page.context().newCDPSession(page)
    const ids: string[] = []
    client.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      for (const { registrationId, scopeURL } of registrations) if (scopeURL.startsWith(agent.url)) ids.push(registrationId)
    })
    await client.send('ServiceWorker.enable')
    await until('the worker is known', () => ids.length > 0)
    const data = JSON.stringify({ title: 'GPU 0 is hot', body: '88 °C', tone: 'critical', tag: 't1', url: '/#/gpu/0' })
    await client.send('ServiceWorker.deliverPushMessage', { origin: agent.url, registrationId: ids[0] ?? '', data })
    const shown = await until('it is shown', async () =>
      page.evaluate(async () => {
        const [one] = await (await navigator.serviceWorker.ready).getNotifications()
        return one ? { title: one.title, body: one.body, url: (one.data as { url: string }).url } : null
      }),
    )
    expect(shown).toEqual({ title: 'GPU 0 is hot', body: '88 °C', url: '/#/gpu/0' })
  })

  it('a browser subscribes with the agent’s own key, and takes it back', { timeout: 120_000 }, async () => {
    const { page, agent } = await open(['--source', 'demo'], '')
    await page.context().grantPermissions(['notifications'], { origin: agent.url })
    // A browser without its maker's service cannot subscribe: this stands in for that service alone.
    await page.addInitScript(() => {
      let current: object | null = null
      PushManager.prototype.getSubscription = async () => current as PushSubscription | null
      PushManager.prototype.subscribe = async (options) => {
        const key = new Uint8Array(options?.applicationServerKey as ArrayBuffer)
        if (key.length !== 65) throw new Error(`a key of ${key.length} bytes`)
        const json = {
          endpoint: 'https://push.example.org/abc',
          keys: {
            p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
            auth: 'BTBZMqHH6r4Tts7J_aSIgg',
          },
        }
        current = {
          endpoint: json.endpoint,
          toJSON: () => json,
          unsubscribe: async () => {
            current = null
            return true
          },
        }
        return current as unknown as PushSubscription
      }
    })
    await page.goto(`${agent.url}/#/alerts`)
    await page.reload()
    await page.getByRole('button', { name: 'Notify me' }).click()
    await until('it is on', async () => (await page.innerText('main')).includes('Stop notifying me'))
    await page.getByRole('button', { name: 'Stop notifying me' }).click()
    await until('it is off', async () => (await page.innerText('main')).includes('Notify me'))
  })

  it('a run is looked at, smoothed, and compared with another', { timeout: 120_000 }, async () => {
    const { page, visit, agent } = await open(['--source', 'demo'], '#/training')
    await postTraining(agent.url, 'first', 2, 80)
    await postTraining(agent.url, 'second', 1, 80)
    await until('both are listed', async () => /first/.test(await page.innerText('main')) && /second/.test(await page.innerText('main')))
    await visit.go('#/training/first')
    await until('its charts are drawn', async () => (await page.locator('.chart canvas').count()) >= 4)
    await page.locator('input[type=range]').first().fill('0.9')
    await until('smoothing is in the address', async () => /0\.9/.test(page.url()))
    const report = await until('the report is there', async () => {
      const answer = await fetch(`${agent.url}/api/v1/runs/first/report.html`)
      return answer.ok ? answer.text() : null
    })
    expect(report).toMatch(/<html/i)
    await visit.go('#/training/compare?runs=first,second')
    await until('both are in one chart', async () => {
      const text = await page.innerText('.chart')
      return text.includes('first') && text.includes('second')
    })
    expect(visit.faults).toEqual([])
  })

  it('a process is killed only where configuration and token allow it, after a question', { timeout: 120_000 }, async () => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    const gone = once(child, 'exit')
    const script = fakeNvmlScript({ gpus: 1, pids: [child.pid ?? 0], process_memory: 2_147_483_648 })
    const env = { GPUWARDEN_NVML: buildFakeNvml(), ...script.env }
    const closed = await open(['--source', 'nvidia'], '#/processes', env)
    await until('the process is there', async () => (await closed.page.innerText('main')).includes(String(child.pid)))
    expect(await closed.page.getByRole('button', { name: /kill|signal|end/i }).count()).toBe(0)
    const token = 'correct-horse-battery'
    const { page, agent } = await open(['--source', 'nvidia'], '#/processes', {
      ...env,
      GPUWARDEN_SERVER_TOKEN: token,
      GPUWARDEN_SERVER_ALLOW_KILL: 'true',
    })
    await page.fill('input[name=token]', token)
    await page.keyboard.press('Enter')
    await until('the process is there', async () => (await page.innerText('main')).includes(String(child.pid)))
    const button = page.getByRole('button', { name: /kill|signal|end/i }).first()
    if (!(await button.isVisible()))
      await page
        .locator('tr', { hasText: String(child.pid) })
        .locator('button')
        .first()
        .click()
    await page
      .getByRole('button', { name: /kill|signal|end/i })
      .first()
      .click()
    expect(await page.innerText('dialog')).toContain(String(child.pid))
    await page.locator('dialog button.danger, dialog button.primary').last().click()
    const [, signal] = await gone
    expect(signal).toBe('SIGTERM')
    await until('the log has it', async () => readFileSync(join(agent.logDir, 'gpu_monitor.log'), 'utf8').includes('SIGTERM'))
  })
})
