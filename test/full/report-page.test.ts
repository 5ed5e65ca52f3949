/** The HTML report in a real browser: what the pointer shows, zooming, and that it asks nobody for anything. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RunningAgent, temporaryFolder } from '../program.ts'
import { post, postLines } from '../training-world.ts'

const CHROMIUM = '/usr/bin/chromium'
const SECONDS = 100
/** The loss chart. */
const CHART = '[data-chart="0"]'

describe.skipIf(!existsSync(CHROMIUM))(`the report in a browser (needs ${CHROMIUM})`, () => {
  let agent: RunningAgent
  let browser: Browser
  let file: string

  beforeAll(async () => {
    agent = await RunningAgent.start(['--source', 'demo', '--interval', '1'])
    const start = Date.now() - (SECONDS + 60) * 1000
    await post(`${agent.url}/api/v1/runs`, { id: 'r1', name: 'a <run> & more', started_at: start })
    // The loss is the second it was reached in, so that a place on the chart tells which value belongs there.
    const lines = Array.from({ length: SECONDS + 1 }, (_, second) =>
      JSON.stringify({ seq: second + 1, rank: 0, step: second, t: start + second * 1000, loss: second === 80 ? 'NaN' : second, lr: 0.001 }),
    )
    await postLines(`${agent.url}/api/v1/runs/r1/steps`, lines.join('\n'))
    await post(`${agent.url}/api/v1/runs/r1/end`, { outcome: 'success', ended_at: start + SECONDS * 1000 })
    file = join(temporaryFolder(), 'report.html')
    writeFileSync(file, await agent.text('/api/v1/runs/r1/report.html'))
    browser = await chromium.launch({ executablePath: CHROMIUM, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
  })

  afterAll(async () => {
    await browser?.close()
    await agent?.stop('SIGKILL')
  })

  async function opened(url: string): Promise<{ page: Page; problems: string[]; asked: string[] }> {
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, timezoneId: 'Asia/Kolkata' })
    const problems: string[] = []
    const asked: string[] = []
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
    })
    page.on('request', (request) => asked.push(request.url()))
    await page.goto(url)
    expect(await page.locator(`${CHART} h3`).innerText()).toBe('Loss')
    await page.locator(CHART).scrollIntoViewIfNeeded()
    await page.locator(`${CHART} canvas`).waitFor()
    return { page, problems, asked }
  }

  /** Where `share` of the time axis is, in the middle of the loss chart. */
  async function place(page: Page, share: number): Promise<{ x: number; y: number }> {
    const box = await page.locator(`${CHART} .u-over`).boundingBox()
    if (!box) throw new Error('the loss chart is not on the page')
    return { x: box.x + 1 + share * (box.width - 2), y: box.y + box.height / 2 }
  }

  async function lossUnder(page: Page, share: number): Promise<number> {
    const { x, y } = await place(page, share)
    await page.mouse.move(x, y)
    const tip = await page.locator('#tip').innerText()
    return Number(/ {2}(-?[\d.]+)/.exec(tip)?.[1] ?? Number.NaN)
  }

  const near = (share: number) => expect.closeTo(share * SECONDS, -0.6)

  it.each(['from disk', 'from the agent'])('%s shows what is under the pointer, zooms and comes back', async (from) => {
    const url = from === 'from disk' ? pathToFileURL(file).href : `${agent.url}/api/v1/runs/r1/report.html?view=1`
    const { page, problems, asked } = await opened(url)
    const zoomed = page.locator('#zoomed')
    const tip = page.locator('#tip')
    expect(await page.locator('h1').innerText()).toBe('a <run> & more')
    expect(await tip.isVisible()).toBe(false)
    for (const share of [0.1, 0.5, 0.9]) expect(await lossUnder(page, share)).toEqual(near(share))
    const odd = await place(page, 0.8)
    await page.mouse.move(odd.x, odd.y)
    expect(await tip.innerText()).toContain('NaN or infinite')
    const drawn = () => page.locator(`${CHART} canvas`).screenshot()
    const whole = await drawn()

    // A quarter to a half, drawn with the mouse.
    const [a, b] = [await place(page, 0.25), await place(page, 0.5)]
    await page.mouse.move(a.x, a.y)
    await page.mouse.down()
    await page.mouse.move(b.x, b.y, { steps: 5 })
    await page.mouse.up()
    await expect.poll(() => zoomed.innerText()).toMatch(/\+05:30 \(double-click shows all\)/)
    expect(await lossUnder(page, 0)).toEqual(near(0.25))
    expect(await lossUnder(page, 0.5)).toEqual(near(0.375))
    expect(await lossUnder(page, 1)).toEqual(near(0.5))
    expect((await drawn()).equals(whole)).toBe(false)

    // Closer still with Ctrl and the wheel: what is under the pointer stays there.
    await page.keyboard.down('Control')
    for (const _ of [1, 2, 3]) await page.mouse.wheel(0, -100)
    await page.keyboard.up('Control')
    await expect.poll(() => lossUnder(page, 0)).toBeGreaterThan(34)
    expect(await lossUnder(page, 1)).toEqual(near(0.5))

    await page.mouse.dblclick(b.x, b.y)
    await expect.poll(() => zoomed.innerText()).toBe('drag to zoom')
    expect(await lossUnder(page, 0.5)).toEqual(near(0.5))

    await page.mouse.move(5, 5)
    expect(await tip.isVisible()).toBe(false)
    expect(problems).toEqual([])
    expect(asked).toEqual([url])
    await page.close()
  })

  it('hides a line, changes its colors, and opens in the dark', async () => {
    const { page, problems } = await opened(pathToFileURL(file).href)
    const box = page.locator(`${CHART} input[type=checkbox]`).first()
    const lines = async () => {
      const { x, y } = await place(page, 0.5)
      await page.mouse.move(x, y)
      return (await page.locator('#tip').innerText()).trim().split('\n').length
    }
    expect(await lines()).toBe(2)
    await box.uncheck()
    expect(await lines()).toBe(1)
    await box.check()
    expect(await lines()).toBe(2)
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    const light = await background()
    const drawn = () => page.locator(`${CHART} canvas`).screenshot()
    const before = await drawn()
    await page.locator('#theme').click()
    const dark = await background()
    expect(dark).not.toBe(light)
    await page.locator('#theme').click()
    expect(await background()).toBe(light)
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await background()).toBe(light)
    await page.reload()
    await page.locator(CHART).scrollIntoViewIfNeeded()
    expect(await background()).toBe(dark)
    await page.locator(`${CHART} canvas`).waitFor()
    expect((await drawn()).equals(before)).toBe(false)
    expect(problems).toEqual([])
    await page.close()
  })

  it('shows the crosshair in all charts, with their figures, and is used by keyboard', async () => {
    const { page, problems } = await opened(pathToFileURL(file).href)
    const { x, y } = await place(page, 0.4)
    await page.mouse.move(x, y)
    const rate = page.locator('[data-chart="1"]')
    expect(await rate.locator('h3').innerText()).toBe('Learning rate')
    expect(await rate.locator('[data-value]').innerText()).toBe('0.001')
    const moments = await page.locator('.legend-moment').allInnerTexts()
    expect(moments[0]?.trim()).not.toBe('')
    expect(moments[1]).toBe(moments[0])
    await page.locator(`${CHART} .chart-box`).focus()
    await page.keyboard.press('+')
    await expect.poll(() => page.locator('#zoomed').innerText()).toContain('double-click')
    await page.keyboard.press('Escape')
    await expect.poll(() => page.locator('#zoomed').innerText()).toBe('drag to zoom')
    expect(problems).toEqual([])
    await page.close()
  })

  it('says times in the zone of the reader, and in UTC without a script', async () => {
    const { page } = await opened(pathToFileURL(file).href)
    const local = await page.locator('header time').innerText()
    expect(local).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d – .*\+05:30$/)
    expect(await page.locator('#zone').innerText()).toContain('UTC+5:30')
    await page.close()
    const plain = await (await browser.newContext({ javaScriptEnabled: false })).newPage()
    await plain.goto(pathToFileURL(file).href)
    const utc = await plain.locator('header time').innerText()
    expect(utc).toMatch(/ UTC$/)
    const [start = ''] = local.split(' – ')
    expect(Date.parse(`${start.replace(' ', 'T')}+05:30`)).toBe(Date.parse(`${utc.slice(0, 19).replace(' ', 'T')}Z`))
    expect(await plain.locator('#theme').isVisible()).toBe(false)
    await plain.close()
  })

  it('as the agent shows it, runs no other script and cannot reach the agent', async () => {
    const { page, problems } = await opened(`${agent.url}/api/v1/runs/r1/report.html?view=1`)
    await page.locator('#theme').click()
    expect(problems).toEqual([])
    expect(await page.evaluate('self.origin')).toBe('null')
    const reached = await page.evaluate(`fetch(${JSON.stringify(`${agent.url}/api/v1/runs`)}).then(() => 'reached', () => 'kept away')`)
    expect(reached).toBe('kept away')
    const ran = await page.evaluate(`new Promise((resolve) => {
      const script = document.createElement('script')
      script.textContent = 'window.ran = true'
      document.body.append(script)
      setTimeout(() => resolve(window.ran === true), 100)
    })`)
    expect(ran).toBe(false)
    await page.close()
  })
})
