/** Every page of the web UI, in a real browser, on the real agent. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { FIXTURES, RunningAgent, until } from '../../program.ts'
import { LAPTOP, openBrowser, PHONE, Visit, whyNoBrowser } from './browser.ts'
import { postOutOfMemory, postTraining } from './training-post.ts'

const PAGES = [
  { hash: '#/', says: /GPU 0/ },
  { hash: '#/gpu/0', says: /Temperature/ },
  { hash: '#/memory', says: /Memory/ },
  { hash: '#/processes', says: /python/ },
  { hash: '#/training', says: /resnet-e2e/ },
  { hash: '#/training/resnet-e2e', says: /Loss/i },
  { hash: '#/training/hungry-e2e', says: /Why memory ran out.*Fragmentation.*train\.py:33.*Tensors.*Who held it.*:118/s },
  { hash: '#/usage', says: /GPU-hours per day/ },
  { hash: '#/alerts', says: /Channels/ },
  { hash: '#/silence?fingerprint=x', says: /Matchers/ },
  { hash: '#/settings', says: /log\.dir/ },
] as const

/** A page that is still being filled moves once; one that moves with its readings does so in every stretch of time. */
async function leastMoved(visit: Visit): Promise<number> {
  await visit.page.waitForTimeout(5000)
  let least = Number.POSITIVE_INFINITY
  for (let stretch = 0; stretch < 5 && least >= STILL; stretch++) least = Math.min(least, await visit.jumps(5000))
  return least
}

/** Cumulative layout shift that nobody notices. */
const STILL = 0.02

const LOOKS = [
  { name: 'laptop, dark', options: { ...LAPTOP, colorScheme: 'dark' } },
  { name: 'laptop, light', options: { ...LAPTOP, colorScheme: 'light' } },
  { name: 'phone, light', options: { ...PHONE, colorScheme: 'light' } },
  { name: 'phone, dark', options: { ...PHONE, colorScheme: 'dark' } },
] as const

describe.skipIf(whyNoBrowser !== '')(`the web UI${whyNoBrowser}`, () => {
  let browser: Browser
  let agent: RunningAgent

  beforeAll(async () => {
    browser = await openBrowser()
    agent = await RunningAgent.start(['--source', 'demo', '--demo-scenario', 'all'])
    await postTraining(agent.url, 'resnet-e2e', 2, 60)
    await postOutOfMemory(agent.url, 'hungry-e2e')
    await until('trouble is found', async () => (await agent.get<{ findings: unknown[] }>('/api/v1/findings')).findings.length > 2, 60_000)
  }, 120_000)

  afterAll(async () => {
    await browser?.close()
    await agent?.stop()
  })

  for (const { name, options } of LOOKS)
    it(`shows each page without fault, barrier or overflow: ${name}`, { timeout: 120_000 }, async () => {
      const visit = await Visit.open(browser, agent.url, '', options)
      for (const { hash, says } of PAGES) {
        await visit.go(hash)
        await until(`${hash} shows ${says}`, async () => says.test(await visit.page.innerText('main')))
        await visit.page.waitForTimeout(1200)
        expect(await visit.overflow(), `${hash} is wider than the window`).toBeLessThanOrEqual(0)
        expect(await visit.barriers(), hash).toEqual([])
        expect(await visit.page.innerText('.banners')).toContain('SIMULATED')
        expect(await visit.isSeen('.nav [aria-current]'), `${hash}: the page's own link is in sight`).toBe(true)
      }
      expect(visit.faults).toEqual([])
      expect(visit.strangers).toEqual([])
      await visit.close()
    })

  it('loads with at most 60 KB over the wire, 140 KB with every page, and from the cache the second time', async () => {
    const visit = await Visit.open(browser, agent.url)
    const loaded = () => {
      const files = [...visit.bytes].filter(([path]) => !/^\/icon-/.test(path))
      return { files: files.length, kilobytes: files.reduce((sum, [, bytes]) => sum + bytes, 0) / 1024 }
    }
    const weights: { files: number; kilobytes: number }[] = []
    for (const { hash, says } of PAGES) {
      await visit.go(hash)
      await until(`${hash} is there`, async () => says.test(await visit.page.innerText('main')))
      weights.push(loaded())
    }
    const [first, all] = [weights[0]?.kilobytes ?? 0, weights.at(-1)?.kilobytes ?? 0]
    console.log(`first load: ${first.toFixed(1)} KB; with every page: ${all.toFixed(1)} KB in ${weights.at(-1)?.files} files`)
    expect(first).toBeGreaterThan(20)
    expect(first).toBeLessThanOrEqual(60)
    expect(all).toBeLessThanOrEqual(140)
    const answers: number[] = []
    visit.page.on('response', (response) => {
      if (new URL(response.url()).pathname.startsWith('/assets/') && !response.fromServiceWorker()) answers.push(response.status())
    })
    const before = await visit.page.evaluate(() => performance.now())
    await visit.page.reload()
    await until('it is there again', async () => /Matchers|log\.dir/.test(await visit.page.innerText('main')))
    const fetched = await visit.page.evaluate(() =>
      performance
        .getEntriesByType('resource')
        .filter((entry) => entry.name.includes('/assets/') && (entry as PerformanceResourceTiming).transferSize > 0)
        .map((entry) => entry.name),
    )
    expect(before).toBeGreaterThan(0)
    expect(fetched, 'files with a hash in their name come from the cache').toEqual([])
    await visit.close()
  })

  it('says on the page of a GPU what is wrong with the training on it', { timeout: 120_000 }, async () => {
    const { findings } = await until('a run is in trouble', async () => {
      const answer = await agent.get<{ findings: { subject: { gpu: string | null; gpuIndex: number | null } }[] }>('/api/v1/findings')
      return answer.findings.some(({ subject }) => subject.gpu === null && subject.gpuIndex !== null) ? answer : null
    })
    const gpu = findings.find(({ subject }) => subject.gpu === null && subject.gpuIndex !== null)?.subject.gpuIndex
    const visit = await Visit.open(browser, agent.url, `#/gpu/${gpu}`)
    await until('it is said', async () => (await visit.page.locator('main .finding').count()) > 0)
    await visit.close()
  })

  it('has no inline script and refuses to be framed', async () => {
    const answer = await fetch(agent.url)
    const policy = answer.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("script-src 'self'")
    expect(policy).not.toContain('unsafe')
    expect(policy).toContain("frame-ancestors 'none'")
    expect(await answer.text()).not.toMatch(/<script(?![^>]*\bsrc=)/)
  })

  it('leads by the keyboard alone from the start to a GPU and back', async () => {
    const visit = await Visit.open(browser, agent.url)
    await until('cards are there', async () => /GPU 0/.test(await visit.page.innerText('main')))
    const reached: string[] = []
    for (let presses = 0; presses < 40; presses++) {
      await visit.page.keyboard.press('Tab')
      const href = await visit.page.evaluate(() => document.activeElement?.getAttribute('href') ?? '')
      reached.push(href)
      if (href === '#/gpu/0') break
    }
    expect(reached).toContain('#/processes')
    expect(reached.at(-1)).toBe('#/gpu/0')
    await visit.page.keyboard.press('Enter')
    await until('the GPU is shown', async () => /PCIe received/.test(await visit.page.innerText('main')))
    await visit.page.goBack()
    await until('the overview is back', async () => !/PCIe received/.test(await visit.page.innerText('main')))
    expect(visit.faults).toEqual([])
    await visit.close()
  })

  it('does not move under the eyes while readings come', { timeout: 120_000 }, async () => {
    const quiet = await RunningAgent.start(['--source', 'demo', '--demo-gpus', '12'])
    onTestFinished(async () => {
      await quiet.stop()
    })
    for (const options of [LAPTOP, PHONE]) {
      const jumps = await Promise.all(
        ['#/', '#/?view=cards', '#/gpu/0', '#/memory', '#/processes', '#/training', '#/alerts'].map(async (hash) => {
          const visit = await Visit.open(browser, quiet.url, hash, options)
          const moved = await leastMoved(visit)
          await visit.close()
          return { hash, isStill: moved < STILL, moved }
        }),
      )
      expect(jumps.filter(({ isStill }) => !isStill)).toEqual([])
    }
  })

  it('is an app that can be installed', async () => {
    const manifest = (await (await fetch(`${agent.url}/manifest.webmanifest`)).json()) as { icons: { src: string }[]; start_url: string }
    for (const { src } of manifest.icons) expect((await fetch(agent.url + src)).status, src).toBe(200)
    const visit = await Visit.open(browser, agent.url)
    const scope = await visit.page.evaluate(async () => (await navigator.serviceWorker.ready).scope)
    expect(scope).toBe(`${agent.url}/`)
    await visit.close()
  })
})

describe.skipIf(whyNoBrowser !== '')(`the web UI with many GPUs and with recordings${whyNoBrowser}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  it('shows 64 GPUs, one line each, on a laptop and on a phone', { timeout: 120_000 }, async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-gpus', '64'])
    for (const options of [LAPTOP, PHONE]) {
      const visit = await Visit.open(browser, agent.url, '', options)
      await until('all are there', async () => (await visit.page.locator('a[href^="#/gpu/"]').count()) >= 64)
      expect(await visit.overflow()).toBeLessThanOrEqual(0)
      expect(await visit.barriers()).toEqual([])
      await visit.go('#/gpu/63')
      await until('the last is shown', async () => /GPU 63/.test(await visit.page.innerText('h1')))
      expect(visit.faults).toEqual([])
      await visit.close()
    }
    await agent.stop()
  })

  for (const trace of ['leak_graph', 'intruder', 'divergence', 'stall'])
    it(`shows the recording ${trace}, marked as such`, { timeout: 120_000 }, async () => {
      const agent = await RunningAgent.start(['--source', `replay:${FIXTURES}/traces/${trace}`, '--speed', '600'])
      const visit = await Visit.open(browser, agent.url, '#/gpu/0?range=24h')
      await until('charts are drawn', async () => (await visit.page.locator('.chart canvas').count()) >= 4, 60_000)
      expect(await visit.page.innerText('.banners')).toContain('REPLAY')
      // Nobody's use is counted while a recording is played: the agent refuses to say, and the browser notes that.
      for (const { hash } of PAGES.filter((page) => page.hash !== '#/usage')) {
        await visit.go(hash)
        await visit.page.waitForTimeout(400)
        expect(await visit.overflow()).toBeLessThanOrEqual(0)
      }
      expect(visit.faults).toEqual([])
      await visit.close()
      await agent.stop()
    })
})
