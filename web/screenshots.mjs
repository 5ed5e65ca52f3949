// The pictures in docs/images, of the demo's story: npm run images, or node web/screenshots.mjs [top overview …] with a built package.
// Needs Chromium. Takes two minutes: each picture has its moment in the story.
import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { startDemoAgent } from '../bench/web/demo-agent.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const program = join(root, 'bin/gpuwarden.js')
const folder = join(root, 'docs/images')
const executablePath = process.env.GPUWARDEN_CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path))
if (!executablePath) throw new Error('Chromium is not installed: apt-get install chromium')
/** A page needs this long for its first charts. */
const LOAD_MS = 6000
const LIMIT_MS = 30_000
/** Seconds after the start: the forecast is narrow, everything else has begun. */
const BEFORE_THE_END = 72
/** The leaking run died at 90 s. */
const AFTER_THE_END = 100

const only = process.argv.slice(2)
const isWanted = (name) => only.length === 0 || only.includes(name)
const agent = await startDemoAgent('--demo-scenario', 'story', '--seed', '1')
const startedAt = Date.now()
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  await during(BEFORE_THE_END, [
    ['overview', '#/', { height: 1340 }],
    ['memory', '#/memory?gpu=0', { height: 1150 }],
    ['overview-phone', '#/', { width: 390, height: 844, colorScheme: 'light' }],
  ])
  if (isWanted('top')) shootTop()
  await shootSnapshot()
  await until(AFTER_THE_END - LOAD_MS / 1000)
  const { runs } = await (await fetch(`${agent.url}/api/v1/runs`, { signal: AbortSignal.timeout(LIMIT_MS) })).json()
  const dead = runs.find(({ outcome }) => outcome === 'oom')
  const slow = runs.find(({ worldSize }) => worldSize > 1)
  if (!dead || !slow)
    throw new Error(`expected a run that died and one with ranks, got ${runs.map(({ name, outcome }) => `${name} ${outcome}`)}`)
  await during(AFTER_THE_END, [
    ['run-died', `#/training/${dead.id}`, { height: 1300 }],
    ['training', `#/training/${slow.id}?smooth=0.8`, { height: 1300 }],
    ['runs', '#/training', { height: 620 }],
    ['alerts', '#/alerts', { height: 1000 }],
  ])
  await during(AFTER_THE_END, [
    ['gpu', '#/gpu/3', { height: 1000 }],
    ['processes', '#/processes?open=5096305@2', { height: 900 }],
    ['settings', '#/settings', { height: 1000, colorScheme: 'light' }],
  ])
} finally {
  await browser.close()
  agent.child.kill()
}

/** Opens the pages in time, and takes the pictures at that second of the story, or as soon as possible after it. */
async function during(second, pictures) {
  const wanted = pictures.filter(([name]) => isWanted(name))
  if (wanted.length === 0) return
  await until(second - LOAD_MS / 1000)
  const open = await Promise.all(
    wanted.map(async ([name, hash, { width = 1440, height, colorScheme = 'dark' }]) => {
      const context = await browser.newContext({ viewport: { width, height }, colorScheme })
      context.setDefaultTimeout(LIMIT_MS)
      const page = await context.newPage()
      await page.goto(`${agent.url}/${hash}`)
      return { name, page, context }
    }),
  )
  await wait(LOAD_MS)
  for (const { name, page, context } of open) {
    await page.screenshot({ path: join(folder, `web-${name}.png`) })
    await context.close()
    console.log(`web-${name}.png at ${Math.round((Date.now() - startedAt) / 1000)} s`)
  }
}

/** Of recorded files, uploaded as a person does: these are of a real GPU. */
async function shootSnapshot() {
  const pictures = [
    ['snapshot', 'leak_hf', { width: 1440, height: 1180, colorScheme: 'dark' }, '.timeline', [0.17, 0.5]],
    ['snapshot-segments', 'fragment_pinned', { width: 1440, height: 900, colorScheme: 'light' }, '.segment-map', null],
    ['snapshot-phone', 'leak_hf', { width: 390, height: 844, colorScheme: 'light' }, '.timeline', null],
  ].filter(([name]) => isWanted(name))
  for (const [name, file, { colorScheme, ...viewport }, shown, pointed] of pictures) {
    const context = await browser.newContext({ viewport, colorScheme })
    context.setDefaultTimeout(LIMIT_MS)
    const page = await context.newPage()
    await page.goto(`${agent.url}/#/snapshots`)
    await page.locator('input[type=file]').setInputFiles(await snapshotFile(file))
    await page.locator('.timeline-box canvas').waitFor()
    await wait(1000)
    if (pointed) {
      const box = await page.locator('.timeline-box canvas').boundingBox()
      await page.mouse.move(box.x + pointed[0] * box.width, box.y + pointed[1] * box.height)
    } else await page.locator(shown).evaluate((element) => element.closest('.panel').scrollIntoView())
    await wait(500)
    await page.screenshot({ path: join(folder, `web-${name}.png`) })
    await context.close()
    console.log(`web-${name}.png`)
  }
}

/** A recorded one, or one with segments that a few blocks pin. */
async function snapshotFile(name) {
  if (name !== 'fragment_pinned') return join(root, `fixtures/snapshots/${name}.pickle.gz`)
  const { writePlanted } = await import('../bench/snapshot/planted.mjs')
  const pieces = []
  writePlanted((bytes) => pieces.push(Buffer.from(bytes)), { steps: 90 })
  return { name: 'planted.pickle', mimeType: 'application/octet-stream', buffer: Buffer.concat(pieces) }
}

function shootTop() {
  const env = { ...process.env, COLUMNS: '132', LINES: '40' }
  const picture = execFileSync(process.execPath, [program, 'top', '--svg', '--connect', agent.url], { env, timeout: LIMIT_MS })
  writeFileSync(join(folder, 'top.svg'), picture)
  console.log(`top.svg at ${Math.round((Date.now() - startedAt) / 1000)} s`)
}

function until(second) {
  return wait(Math.max(0, startedAt + second * 1000 - Date.now()))
}

function wait(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
