/** A recording in the browser: play, pause, move with the mouse and the keyboard, and what is left at its end. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { FIXTURES, RunningAgent, until } from '../../program.ts'
import { LAPTOP, openBrowser, PHONE, Visit, whyNoBrowser } from './browser.ts'

const NO_LOG = { GPUWARDEN_LOG_ENABLED: 'false' }

describe.skipIf(whyNoBrowser !== '')(`a recording in the web UI${whyNoBrowser}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  async function play(trace: string, args: readonly string[]): Promise<RunningAgent> {
    const agent = await RunningAgent.start(['--source', `replay:${FIXTURES}/${trace}`, ...args], NO_LOG)
    onTestFinished(async () => {
      await agent.stop('SIGKILL')
    })
    return agent
  }

  async function visitTo(agent: RunningAgent, hash: string, options = LAPTOP): Promise<Visit> {
    const visit = await Visit.open(browser, agent.url, hash, options)
    onTestFinished(() => visit.close())
    return visit
  }

  const corner = (visit: Visit) => visit.page.innerText('.linkstate')
  const newest = async (agent: RunningAgent) =>
    Math.max(...((await agent.get<{ data: number[][] }>('/api/v1/history?gpu=0&field=powerWatts&from=0')).data[0] ?? []))

  it('keeps runs, findings and endings after the end, and never says "live"', { timeout: 120_000 }, async () => {
    const agent = await play('out-of-memory', ['--speed', 'max'])
    for (const options of [LAPTOP, PHONE]) {
      const visit = await visitTo(agent, '', options)
      await until('it is over', async () => (await corner(visit)) === 'recording, ended')
      await until('its death is shown', async () => /died after 56 s at step 260/.test(await visit.page.innerText('main')))
      const text = await visit.page.innerText('body')
      expect(text).not.toMatch(/\blive\b|Nothing is wrong|No findings|no run/i)
      expect(await visit.page.innerText('.overview-side')).toMatch(/train\.py[\s\S]*out of memory/i)
      expect(await visit.page.locator('.replay-marks button.end').count()).toBe(1)
      expect(await visit.overflow()).toBeLessThanOrEqual(0)
      expect(await visit.barriers()).toEqual([])
      await visit.go('#/training/d9d1d91b7e09196e')
      await until('its ending is told', async () => /How it ended[\s\S]*died after 56 s/.test(await visit.page.innerText('main')))
      await until('charts are drawn', async () => (await visit.page.locator('.chart canvas').count()) >= 4)
      expect(await visit.page.locator('a[href$="report.html?view=1"]').count()).toBe(1)
      expect(await visit.overflow()).toBeLessThanOrEqual(0)
      expect(visit.faults).toEqual([])
    }
  })

  it('is paused, moved and played with the mouse and the keyboard', { timeout: 120_000 }, async () => {
    const agent = await play('traces/leak_graph', ['--speed', '1'])
    const visit = await visitTo(agent, '#/gpu/0?range=24h')
    const { page } = visit
    await until('the time line is there', async () => (await page.locator('.replay-slider').count()) === 1)
    await page.click('.replay-play')
    await until('it is paused', async () => /^recording, paused at \d\d:\d\d:\d\d/.test(await corner(visit)))
    const paused = await newest(agent)

    await page.locator('h1').click()
    await page.keyboard.press('Shift+ArrowRight')
    await until('it is a minute later', async () => (await newest(agent)) > paused + 55_000)
    await until('the finding is shown', async () => /leaks 96 MiB per step/.test(await page.innerText('main')))

    // Back to the left end with the mouse: nothing of later is left on the page.
    const box = await page.locator('.replay-slider').boundingBox()
    if (!box) throw new Error('the time line has no place')
    await page.mouse.click(box.x + box.width * 0.05, box.y + box.height / 2)
    await until('it went back', async () => (await newest(agent)) < paused + 20_000)
    await until('the finding is gone', async () => !/leaks 96 MiB per step/.test(await page.innerText('main')))
    expect(await corner(visit)).toMatch(/^recording, paused at/)

    await page.locator('h1').click()
    await page.keyboard.press('Space')
    await until('it plays', async () => (await corner(visit)) === 'recording, playing')
    await page.selectOption('.replay select', '300')
    await until('it is over', async () => (await corner(visit)) === 'recording, ended')
    expect(await page.innerText('.replay-play')).toBe('Play again')
    await page.click('[aria-label="Previous mark"]')
    await until('it is at the mark', async () => /^recording, paused at/.test(await corner(visit)))
    expect(visit.faults).toEqual([])
  })
})
