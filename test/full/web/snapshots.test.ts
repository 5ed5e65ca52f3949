/** Pictures of memory snapshots in a real browser: on the page of the agent, and as a file from disk. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FIXTURES, RunningAgent, run, temporaryFolder, until } from '../../program.ts'
import { LAPTOP, openBrowser, PHONE, Visit, whyNoBrowser } from './browser.ts'

const file = (name: string) => join(FIXTURES, 'snapshots', `${name}.pickle.gz`)
const TIMELINE = '.timeline-box canvas'
const WAIT_MS = 30_000

/** How many different colors a canvas shows: a blank one has one. */
function colorsOn(page: Page, selector: string): Promise<number> {
  return page.evaluate((wanted) => {
    const canvas = document.querySelector<HTMLCanvasElement>(wanted)
    const pixels = canvas?.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? []
    const found = new Set<number>()
    for (let i = 0; i < pixels.length; i += 4)
      found.add(((pixels[i] ?? 0) << 24) | ((pixels[i + 1] ?? 0) << 16) | ((pixels[i + 2] ?? 0) << 8) | (pixels[i + 3] ?? 0))
    return found.size
  }, selector)
}

/** The picture itself, to see whether something changed it. */
function drawn(page: Page): Promise<string> {
  return page.evaluate((wanted) => document.querySelector<HTMLCanvasElement>(wanted)?.toDataURL() ?? '', TIMELINE)
}

async function place(page: Page, x: number, y: number): Promise<{ x: number; y: number }> {
  await page.locator(TIMELINE).scrollIntoViewIfNeeded()
  const box = await page.locator(TIMELINE).boundingBox()
  if (!box) throw new Error('there is no timeline')
  return { x: box.x + 64 + x * (box.width - 72), y: box.y + 14 + y * (box.height - 38) }
}

const moment = (page: Page) => page.locator('.timeline-box').getAttribute('aria-valuenow').then(Number)

/** What works the same in both places. */
async function usePictures(page: Page): Promise<void> {
  expect(await colorsOn(page, TIMELINE)).toBeGreaterThan(6)
  expect(await colorsOn(page, '.segment-box canvas')).toBeGreaterThan(3)
  const low = await place(page, 0.5, 0.9)
  await page.mouse.move(low.x, low.y)
  const tip = page.locator('.snapshot-tip')
  expect(await tip.innerText()).toMatch(
    /finetune\.py:77 in <module> {2}3\.4 GiB {2}\(8\d%\)\n.*<module> .*\n.*empty\n4\.0 GiB in use, .*\nevent /,
  )
  const before = await drawn(page)
  await page.mouse.click(low.x, low.y)
  await page.locator('.band-stacks').waitFor({ timeout: WAIT_MS })
  expect(await page.locator('.band-stacks').innerText()).toMatch(/finetune\.py:77/)
  expect(await page.locator('.band-list [aria-pressed="true"]').innerText()).toMatch(/finetune\.py:77/)
  await until('the pinned band stands out', async () => (await drawn(page)) !== before)
  expect(await moment(page)).toBeGreaterThan(3000)
  // The segments follow the moment.
  await until('the segments are of that moment', async () => /event [34],\d\d\d/.test(await page.locator('.moment-choice').innerText()))
  await page.locator('.timeline-box').focus()
  const at = await moment(page)
  await page.keyboard.press('ArrowRight')
  expect(await moment(page)).toBe(at + 40)
  await page.keyboard.press('Control+ArrowLeft')
  expect(await moment(page)).toBe(at + 39)
  const whole = await drawn(page)
  for (let i = 0; i < 4; i++) await page.keyboard.press('+')
  await until('it zooms', async () => (await drawn(page)) !== whole)
  const zoomed = await drawn(page)
  await page.keyboard.press('Shift+ArrowRight')
  await until('it pans', async () => (await drawn(page)) !== zoomed)
  await page.keyboard.press('Escape')
  expect(await page.locator('.band-stacks').count()).toBe(0)
  await page.keyboard.press('End')
  expect(await moment(page)).toBe(7999)
  await page.keyboard.press('ArrowDown')
  expect(await page.locator('.band-list [aria-pressed="true"]').count()).toBe(1)
  await page.locator('.timeline').getByText('by category').click()
  expect(await page.locator('.band-list').innerText()).toMatch(/unknown/)
  await page.locator('.segment-box').focus()
  await page.keyboard.press('Home')
  expect(await page.locator('.segment-words').innerText()).toMatch(/^\d+ MiB at 0x[\da-f]+.* in use/)
  await page.locator('.flame-call').first().focus()
  await page.keyboard.press('ArrowDown')
  expect(await page.locator('.flame-words').innerText()).toMatch(/3\.5 GiB, 8\d%[\s\S]*finetune\.py:77/)
  await page.keyboard.press('Enter')
  expect(await page.locator('.flame-call').count()).toBe(1)
  await page.getByText('Show all').click()
  expect(await page.locator('.flame-call').count()).toBeGreaterThan(3)
}

describe.skipIf(whyNoBrowser !== '')(`memory snapshots${whyNoBrowser}`, () => {
  let browser: Browser
  let agent: RunningAgent

  beforeAll(async () => {
    browser = await openBrowser()
    agent = await RunningAgent.start(['--source', 'demo'])
  }, 120_000)

  afterAll(async () => {
    await browser?.close()
    await agent?.stop()
  })

  async function uploaded(visit: Visit, name: string): Promise<string> {
    await visit.go('#/snapshots')
    await visit.page.locator('input[type=file]').setInputFiles(file(name), { timeout: WAIT_MS })
    await visit.page.locator(TIMELINE).waitFor({ timeout: WAIT_MS })
    return visit.page.url().split('/').at(-1) ?? ''
  }

  it('are uploaded, shown, compared and removed on the page', { timeout: 180_000 }, async () => {
    const visit = await Visit.open(browser, agent.url, '#/memory')
    const { page } = visit
    page.setDefaultTimeout(WAIT_MS)
    await page.getByRole('link', { name: 'Snapshots' }).click()
    const before = await uploaded(visit, 'healthy')
    await uploaded(visit, 'leak')
    expect(await page.locator('h1').innerText()).toBe('leak.pickle.gz')
    await usePictures(page)
    await page.locator('select').first().selectOption(before)
    await page.locator('.diff-table').waitFor()
    expect(await page.locator('.diff-table tbody tr').first().innerText()).toMatch(/\+3\.5 GiB new[\s\S]*finetune\.py:77/)
    expect(page.url()).toContain(`before=${before}`)
    // A closer look asks the agent for finer columns.
    const finer = page.waitForRequest(/\/columns\?/)
    await page.locator('.timeline-box').focus()
    for (let i = 0; i < 6; i++) await page.keyboard.press('+')
    await finer
    await visit.go('#/snapshots')
    await page.getByRole('button', { name: 'Remove healthy.pickle.gz' }).click()
    await until('it is gone', async () => !(await page.locator('main').innerText()).includes('healthy.pickle.gz'))
    expect([visit.faults, visit.strangers]).toEqual([[], []])
    await visit.close()
  })

  it('say what is wrong with a file', { timeout: 60_000 }, async () => {
    const visit = await Visit.open(browser, agent.url, '#/snapshots')
    await visit.page.locator('input[type=file]').setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') })
    await visit.page.getByText(/a\.txt cannot be read as a memory snapshot/).waitFor({ timeout: WAIT_MS })
    expect(visit.faults).toEqual([])
    await visit.close()
  })

  it.each([
    ['laptop, dark', { ...LAPTOP, colorScheme: 'dark' }],
    ['laptop, light', { ...LAPTOP, colorScheme: 'light' }],
    ['phone, dark', { ...PHONE, colorScheme: 'dark' }],
    ['phone, light', { ...PHONE, colorScheme: 'light' }],
  ] as const)('have no fault, barrier or overflow: %s', { timeout: 120_000 }, async (_, options) => {
    const visit = await Visit.open(browser, agent.url, '#/snapshots', options)
    expect(await visit.barriers()).toEqual([])
    const other = await uploaded(visit, 'fragment_oom')
    const id = await uploaded(visit, 'graphs')
    await visit.go(`#/snapshots/${id}?before=${other}`)
    await visit.page.locator('.diff-table').waitFor({ timeout: WAIT_MS })
    await visit.page.locator('.band-list button').first().click()
    expect(await visit.barriers()).toEqual([])
    expect(await visit.overflow()).toBe(0)
    expect(visit.faults).toEqual([])
    await visit.close()
  })

  it('are one file that asks nobody', { timeout: 120_000 }, async () => {
    const path = join(temporaryFolder(), 'leak.html')
    const { code, stderr } = await run(['snapshot', file('leak'), '--html', path])
    expect([code, stderr]).toEqual([0, `gpuwarden: wrote ${path}\n`])
    const context = await browser.newContext({ ...LAPTOP, colorScheme: 'light' })
    const page = await context.newPage()
    page.setDefaultTimeout(WAIT_MS)
    const faults: string[] = []
    const asked: string[] = []
    page.on('pageerror', (error) => faults.push(String(error.stack ?? error)))
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
    page.on('request', (request) => asked.push(request.url()))
    await page.goto(pathToFileURL(path).href)
    await page.locator(TIMELINE).waitFor()
    await usePictures(page)
    const light = await drawn(page)
    await page.locator('#theme').click()
    await until('the pictures are dark', async () => (await drawn(page)) !== light)
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0)
    expect([faults, asked]).toEqual([[], [pathToFileURL(path).href]])
    await context.close()
  })

  it('of two files begin with what changed, also on a phone', { timeout: 120_000 }, async () => {
    const path = join(temporaryFolder(), 'both.html')
    expect((await run(['snapshot', file('healthy'), file('leak'), '--at', 'end', '--html', path])).code).toBe(0)
    const context = await browser.newContext(PHONE)
    const page = await context.newPage()
    await page.goto(pathToFileURL(path).href)
    await page.locator('.diff-table').waitFor({ timeout: WAIT_MS })
    expect(await page.locator('.diff-table tbody tr').first().innerText()).toMatch(/\+3\.5 GiB new/)
    expect(await page.getByText('8,000 events').count()).toBe(1)
    await page.getByText('before: healthy.pickle.gz').click()
    expect(await page.getByText('4,000 events').count()).toBe(1)
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0)
    await context.close()
  })
})
