/** A real browser on the real web UI: what it complains of, whom it talks to, and whether everybody can use it. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const CANDIDATES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
export const CHROMIUM = process.env.GPUWARDEN_CHROMIUM ?? CANDIDATES.find((path) => existsSync(path)) ?? null

/** '' when there is one, else the words for the title of a skipped suite. */
export const whyNoBrowser = CHROMIUM === null ? ' (skipped: Chromium is not installed; test/full/run.sh installs it where it can)' : ''

export function openBrowser(): Promise<Browser> {
  if (CHROMIUM === null) throw new Error('Chromium is not installed')
  // Without its sandbox: the tests may run as root, and the page is our own.
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] })
}

export const PHONE: BrowserContextOptions = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 }
export const LAPTOP: BrowserContextOptions = { viewport: { width: 1440, height: 900 } }

/** A page that keeps account of what went wrong on it. */
export class Visit {
  readonly page: Page
  readonly url: string
  /** Errors of the console and exceptions, in their own words. */
  readonly faults: string[] = []
  /** Addresses of other hosts that were asked for anything. */
  readonly strangers: string[] = []
  /** What was sent over the wire for the page itself, by path. */
  readonly bytes = new Map<string, number>()

  private constructor(page: Page, url: string) {
    this.page = page
    this.url = url
  }

  static async open(browser: Browser, url: string, path = '', options: BrowserContextOptions = LAPTOP): Promise<Visit> {
    const context = await browser.newContext(options)
    const page = await context.newPage()
    const visit = new Visit(page, url)
    page.on('console', (message) => {
      if (message.type() === 'error') visit.faults.push(`${message.text()} ${message.location().url}`)
    })
    page.on('pageerror', (error) => visit.faults.push(String(error.stack ?? error)))
    page.on('request', (request) => {
      const asked = new URL(request.url())
      if (asked.protocol.startsWith('http') && asked.origin !== new URL(url).origin) visit.strangers.push(request.url())
    })
    page.on('requestfinished', async (request) => {
      const { pathname } = new URL(request.url())
      if (pathname.startsWith('/api/')) return
      const sizes = await request.sizes().catch(() => null)
      if (sizes) visit.bytes.set(pathname, sizes.responseBodySize)
    })
    await page.goto(`${url}/${path}`)
    return visit
  }

  async go(hash: string): Promise<void> {
    await this.page.evaluate((to) => {
      location.hash = to
    }, hash)
  }

  /** What is wider than the window: nothing may be, except what scrolls inside its own box. */
  overflow(): Promise<number> {
    return this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  }

  /** Whether the whole width of the element is inside the window. */
  isSeen(selector: string): Promise<boolean> {
    return this.page.evaluate((wanted) => {
      const box = document.querySelector(wanted)?.getBoundingClientRect()
      return box !== undefined && box.left >= 0 && box.right <= document.documentElement.clientWidth
    }, selector)
  }

  /** How far the page's pieces have jumped by themselves within this time, by the browser's own measure; 0: nothing moved. */
  jumps(ms: number): Promise<number> {
    return this.page.evaluate(
      (wait) =>
        new Promise<number>((resolve) => {
          let sum = 0
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) sum += (entry as PerformanceEntry & { readonly value: number }).value
          }).observe({ type: 'layout-shift' })
          setTimeout(() => resolve(sum), wait)
        }),
      ms,
    )
  }

  /** Findings of axe-core that keep somebody from using the page. */
  async barriers(): Promise<string[]> {
    await this.page.evaluate(axeSource())
    const violations = await this.page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: { run: (options: object) => Promise<{ violations: Violation[] }> } }
      const found = await axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] })
      return found.violations.map(({ id, impact, help, nodes }) => ({
        id,
        impact,
        help,
        where: nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary ?? ''}`),
      }))
    })
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, help, where }) => `${id}: ${help}: ${where.join(' | ')}`)
  }

  close(): Promise<void> {
    return this.page.context().close()
  }
}

interface Violation {
  readonly id: string
  readonly impact: string | null
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

let source: string | null = null

function axeSource(): string {
  source ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  return source
}
