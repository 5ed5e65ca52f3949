// What the web UI costs: drawing a day of samples, 64 GPUs live in a browser, and the agent's share of each page that is open.
//   node bench/web/run.mjs [--seconds 30]
// Needs Chromium. Shares are of processor time, not of the clock: on a busy machine a thread that waits is not counted as one that works.
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { build, preview } from 'vite'
import { startDemoAgent } from './demo-agent.mjs'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '30' } } })
const seconds = Number(values.seconds)
const root = fileURLToPath(new URL('../..', import.meta.url))
const executablePath = process.env.GPUWARDEN_CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path))
if (!executablePath) {
  console.error('Chromium is not installed: apt-get install chromium')
  process.exit(1)
}
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1]

await drawADay()
await manyGpus()
await manyPages()
await browser.close()
process.exit(0)

async function drawADay() {
  const outDir = mkdtempSync(join(tmpdir(), 'gpuwarden-bench-web-'))
  const common = { root: join(root, 'bench/web'), configFile: false, logLevel: 'error' }
  await build({
    ...common,
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: { outDir, emptyOutDir: true, rolldownOptions: { input: join(root, 'bench/web/chart.html') } },
  })
  const server = await preview({ ...common, build: { outDir }, preview: { port: 0, host: '127.0.0.1' } })
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
  await page.goto(`http://127.0.0.1:${server.httpServer.address().port}/chart.html`)
  await page.waitForFunction(() => 'measure' in globalThis)
  const threadTime = await threadClock(page)
  const times = []
  const busy = []
  for (let turn = 0; turn < 7; turn++) {
    await page.evaluate(() => globalThis.prepare())
    const before = await threadTime()
    times.push(await page.evaluate(() => globalThis.measure()))
    busy.push((await threadTime()) - before)
  }
  console.log(
    `a day at 1 Hz, 8 series (691,200 points): ${median(times).toFixed(0)} ms from data to picture (median of 7; first ${times[0].toFixed(0)} ms; goal 200), ${(median(busy) * 1000).toFixed(0)} ms of it on the processor`,
  )
  await page.close()
  server.httpServer.close()
}

async function manyGpus() {
  const agent = await startDemoAgent('--interval', '1', '--demo-scenario', 'healthy', '--demo-gpus', '64')
  for (const look of ['table', 'cards']) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    await page.goto(`${agent.url}/#/?view=${look}`)
    await wait(8000)
    const threadTime = await threadClock(page)
    const before = await threadTime()
    const began = performance.now()
    await wait(seconds * 1000)
    const share = ((await threadTime()) - before) / ((performance.now() - began) / 1000)
    console.log(`64 GPUs live at 1 Hz, ${look}: ${(share * 100).toFixed(1)} % of a core in the main thread (goal 10)`)
    await page.close()
  }
  agent.child.kill()
}

async function manyPages() {
  const agent = await startDemoAgent('--interval', '1', '--demo-scenario', 'healthy', '--demo-gpus', '8')
  await wait(5000)
  const alone = await cpuShare(agent.child.pid)
  const streams = Array.from({ length: 50 }, () => get(`${agent.url}/api/v1/stream`, (answer) => answer.resume()))
  await wait(2000)
  const clients = (await (await fetch(`${agent.url}/api/v1/health`)).json()).stream.clients
  const together = await cpuShare(agent.child.pid)
  for (const stream of streams) stream.destroy()
  const again = await cpuShare(agent.child.pid)
  const base = (alone + again) / 2
  console.log(
    `agent with 8 GPUs at 1 Hz: ${(base * 100).toFixed(2)} % of a core alone, ${(together * 100).toFixed(2)} % with ${clients} pages: ${(((together - base) / clients) * 100).toFixed(3)} % a page (goal 1)`,
  )
  agent.child.kill()
}

/** Seconds of processor time that the page's main thread has taken. */
async function threadClock(page) {
  const client = await page.context().newCDPSession(page)
  await client.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => {
    const { metrics } = await client.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'ThreadTime').value
  }
}

/** Share of a core that the agent process itself takes; its sampler is another process. */
async function cpuShare(pid) {
  const ticks = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return Number(fields[11]) + Number(fields[12])
  }
  const before = ticks()
  await wait(seconds * 1000)
  return (ticks() - before) / 100 / seconds
}
