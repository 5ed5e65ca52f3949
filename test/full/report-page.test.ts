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
/** Of the charts, inside their canvas. */
const PAD = { left: 62, right: 12 }

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
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 } })
    const problems: string[] = []
    const asked: string[] = []
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
    })
    page.on('request', (request) => asked.push(request.url()))
    await page.goto(url)
    await page.locator('canvas[aria-label="Loss"]').waitFor()
    await page.locator('canvas[aria-label="Loss"]').scrollIntoViewIfNeeded()
    return { page, problems, asked }
  }

  /** Where `share` of the time axis is, in the middle of the loss chart. */
  async function place(page: Page, share: number): Promise<{ x: number; y: number }> {
    const box = await page.locator('canvas[aria-label="Loss"]').boundingBox()
    if (!box) throw new Error('the loss chart is not on the page')
    return { x: box.x + PAD.left + share * (box.width - PAD.left - PAD.right), y: box.y + box.height / 2 }
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
    const drawn = () => page.locator('canvas[aria-label="Loss"]').screenshot()
    const whole = await drawn()

    // A quarter to a half, drawn with the mouse.
    const [a, b] = [await place(page, 0.25), await place(page, 0.5)]
    await page.mouse.move(a.x, a.y)
    await page.mouse.down()
    await page.mouse.move(b.x, b.y, { steps: 5 })
    await page.mouse.up()
    expect(await zoomed.innerText()).toContain('double-click shows all')
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
    expect(await zoomed.innerText()).toBe('drag to zoom')
    expect(await lossUnder(page, 0.5)).toEqual(near(0.5))

    await page.mouse.move(5, 5)
    expect(await tip.isVisible()).toBe(false)
    expect(problems).toEqual([])
    expect(asked).toEqual([url])
    await page.close()
  })

  it('hides a line, changes its colours, and opens in the dark', async () => {
    const { page, problems } = await opened(pathToFileURL(file).href)
    const chart = page.locator('figure', { has: page.locator('canvas[aria-label="Loss"]') })
    await chart.locator('input[type=checkbox]').first().uncheck()
    const { x, y } = await place(page, 0.5)
    await page.mouse.move(x, y)
    expect((await page.locator('#tip').innerText()).trim().split('\n').length).toBe(1)
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    const light = await background()
    await page.locator('#theme').click()
    expect(await background()).not.toBe(light)
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(problems).toEqual([])
    await page.close()
  })

  it('as the agent shows it, runs no other script and cannot reach the agent', async () => {
    const { page } = await opened(`${agent.url}/api/v1/runs/r1/report.html?view=1`)
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
