// The pictures of the web UI in docs/images, from simulated GPUs: node web/screenshots.mjs [overview gpu …]
// Needs Chromium and a built package. Takes three minutes: histories have to fill first, but the demo's leak not to its end.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { startDemoAgent } from '../bench/web/demo-agent.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'docs/images')
const executablePath = process.env.GPUWARDEN_CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path))
if (!executablePath) throw new Error('Chromium is not installed: apt-get install chromium')
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const WARM_UP_MS = Number(process.env.WARM_UP_MS ?? 110_000)

const only = process.argv.slice(2)
let step = 0
const agent = await startDemoAgent('--demo-scenario', 'all')
await announceTraining()
const training = setInterval(() => void postStep(), 500)
await wait(WARM_UP_MS)
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
await shoot('overview', '#/', { height: 1000 })
await shoot('gpu', '#/gpu/3', { height: 1000 })
await shoot('memory', '#/memory?gpu=0', { height: 1150 })
await shoot('processes', '#/processes?open=4196305@2', { height: 900 })
await shoot('training', '#/training/resnet50-imagenet?smooth=0.8', { height: 1150 })
await shoot('alerts', '#/alerts', { height: 1000 })
await shoot('settings', '#/settings', { height: 1000, colorScheme: 'light' })
await shoot('overview-phone', '#/', { width: 390, height: 844, colorScheme: 'light' })
await browser.close()
clearInterval(training)
agent.child.kill()

async function shoot(name, hash, { width = 1440, height, colorScheme = 'dark' }) {
  if (only.length > 0 && !only.includes(name)) return
  const context = await browser.newContext({ viewport: { width, height }, colorScheme })
  const page = await context.newPage()
  await page.goto(`${agent.url}/${hash}`)
  await wait(6000)
  await page.screenshot({ path: join(folder, `web-${name}.png`) })
  await context.close()
  console.log(`web-${name}.png`)
}

async function post(path, body, type = 'application/json') {
  const answer = await fetch(agent.url + path, { method: 'POST', body, headers: { 'content-type': type } })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
}

function announceTraining() {
  const run = {
    id: 'resnet50-imagenet',
    name: 'resnet50-imagenet',
    user: 'dave',
    framework: 'pytorch',
    world_size: 2,
    gpus: ['3'],
    total_steps: 5000,
  }
  return post('/api/v1/runs', JSON.stringify(run))
}

async function postStep() {
  step++
  const lines = [0, 1].map((rank) => {
    const slow = rank === 1 ? 1.35 : 1
    const noise = (Math.sin(step * 12.9898 + rank) * 43_758.5453) % 1
    return JSON.stringify({
      ...{ seq: step, rank, step, t: Date.now(), epoch: Math.floor(step / 120) },
      ...{ loss: 1.2 + 5.6 * Math.exp(-step / 90) + 0.25 * Math.abs(noise), lr: 0.1 * Math.min(1, step / 60) },
      ...{ grad_norm: 1.4 + Math.abs(noise), throughput: 1180 / slow + 40 * noise, step_seconds: 0.43 * slow + 0.02 * Math.abs(noise) },
      ...{ phases: { data: 0.05, forward: 0.14 * slow, backward: 0.2 * slow, optimizer: 0.04 } },
      alloc: {
        allocated: 9.1 * 2 ** 30,
        reserved: 12.4 * 2 ** 30,
        active: 9.6 * 2 ** 30,
        inactive_split: 0.5 * 2 ** 30,
        peak_allocated: 10.9 * 2 ** 30,
      },
    })
  })
  await post('/api/v1/runs/resnet50-imagenet/steps', `${lines.join('\n')}\n`, 'application/x-ndjson')
}
