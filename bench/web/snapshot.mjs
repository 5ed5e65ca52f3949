// How smoothly the timeline of a large memory snapshot pans and zooms: a planted file of millions of events, drawn in Chromium.
//   node bench/web/snapshot.mjs [--size 1GB] [--frames 300]
// Needs Chromium and a built package. Times of frames depend on what else the machine does; the drawing itself is measured too.
import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { stepsFor, writePlanted } from '../snapshot/planted.mjs'

const { values } = parseArgs({ options: { size: { type: 'string', default: '1GB' }, frames: { type: 'string', default: '300' } } })
const program = fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url))
const executablePath = process.env.GPUWARDEN_CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path))
if (!executablePath) throw new Error('Chromium is not installed: apt-get install chromium')
const [, amount, unit] = /^(\d+)(MB|GB)$/.exec(values.size) ?? []
if (amount === undefined) throw new Error(`--size: expected 100MB or 1GB; got ${values.size}`)
const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-bench-'))
try {
  const [file, html] = [join(folder, 'planted.pickle'), join(folder, 'planted.html')]
  const out = openSync(file, 'w')
  const truth = writePlanted((bytes) => writeSync(out, bytes), { steps: stepsFor(Number(amount) * (unit === 'GB' ? 1e9 : 1e6)) })
  closeSync(out)
  const begun = performance.now()
  execFileSync(process.execPath, [program, 'snapshot', file, '--html', html], { stdio: 'ignore', timeout: 600_000 })
  console.log(
    `${(statSync(file).size / 1e6).toFixed(0)} MB, ${truth.events.toLocaleString('en-US')} events: page of ${(statSync(html).size / 1e6).toFixed(1)} MB in ${((performance.now() - begun) / 1000).toFixed(1)} s`,
  )
  await drive(html)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function drive(html) {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'], timeout: 60_000 })
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    page.setDefaultTimeout(60_000)
    await page.goto(pathToFileURL(html).href)
    await page.locator('.timeline-box canvas').scrollIntoViewIfNeeded()
    for (const [name, wheel] of [
      ['zoom', { ctrlKey: true, deltaY: 1 }],
      ['pan', { shiftKey: true, deltaX: 12 }],
    ]) {
      const { intervals, drawing } = await page.evaluate(measure, { wheel, frames: Number(values.frames) })
      const figure = (list, share) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))].toFixed(1)
      console.log(
        `${name}: ${figure(intervals, 0.5)} ms from frame to frame (median; 95% within ${figure(intervals, 0.95)} ms), ${figure(drawing, 0.5)} ms of it to draw (95% within ${figure(drawing, 0.95)} ms)`,
      )
    }
    console.log(`without GPU, on ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}`)
  } finally {
    await browser.close()
  }
}

/** In the page: one turn of the wheel a frame, there and back again. */
function measure({ wheel, frames }) {
  const canvas = document.querySelector('.timeline-box canvas')
  const box = canvas.getBoundingClientRect()
  const [intervals, drawing] = [[], []]
  // What is asked for before the next frame is drawn in it: the time between these two is that of the drawing.
  const request = globalThis.requestAnimationFrame.bind(globalThis)
  globalThis.requestAnimationFrame = (callback) =>
    request((at) => {
      const begun = performance.now()
      callback(at)
      drawing.push(performance.now() - begun)
    })
  return new Promise((resolve) => {
    let [count, last] = [0, 0]
    const turn = (at) => {
      if (count > 1) intervals.push(at - last)
      last = at
      if (++count > frames) {
        globalThis.requestAnimationFrame = request
        resolve({ intervals, drawing })
        return
      }
      const sign = Math.floor(count / 40) % 2 === 0 ? -1 : 1
      canvas.dispatchEvent(
        new WheelEvent('wheel', {
          bubbles: true,
          cancelable: true,
          clientX: box.left + box.width * 0.6,
          clientY: box.top + 100,
          ctrlKey: wheel.ctrlKey === true,
          shiftKey: wheel.shiftKey === true,
          deltaX: (wheel.deltaX ?? 0) * sign,
          deltaY: (wheel.deltaY ?? 0) * sign,
        }),
      )
      request(turn)
    }
    request(turn)
  })
}
