/** Weights & Biases, offline: the lines of the documentation are run as they stand, and what wandb wrote down is looked at. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, expect, it } from 'vitest'
import { RunningAgent, temporaryFolder } from '../program.ts'
import { pythonWith } from './python-packages.ts'

const run = promisify(execFile)
const DOCUMENT = fileURLToPath(new URL('../../docs/mlflow-wandb.md', import.meta.url))
const SDK = fileURLToPath(new URL('../../python', import.meta.url))
/** 125 MB on disk. */
const WANDB = { name: 'wandb', packages: ['wandb'], imports: 'import wandb', installMs: 240_000, neededBytes: 512 * 1024 ** 2 }

let python = ''
let missing: string | null = null

beforeAll(async () => {
  const found = await pythonWith(WANDB)
  if ('missing' in found) missing = found.missing
  else python = found.python
}, WANDB.installMs + 120_000)

it('wandb has the figures and findings of a run in its summary, and gpuwarden its config', async ({ skip }) => {
  if (missing !== null) skip(missing)
  const agent = await RunningAgent.start(['--source', 'demo', '--demo-scenario', 'idle'])
  const folder = temporaryFolder()
  const program = `
import json, gpuwarden, wandb
tracked = wandb.init(config={"lr": 0.1, "api_key": "abc"})
with gpuwarden.run("tracked", run_id="tracked") as run:
    for step in range(40): run.log(step=step, loss=1.0 if step < 20 else float("nan"))
print(json.dumps({name: value for name, value in dict(tracked.summary).items() if name.startswith("gpuwarden/")}))
wandb.finish()`
  const env = { ...process.env, PYTHONPATH: SDK, WANDB_MODE: 'offline', WANDB_DIR: folder, WANDB_SILENT: 'true', GPUWARDEN_URL: agent.url }
  try {
    const { stdout } = await run(python, ['-c', program], { env, cwd: folder, timeout: 120_000 })
    const summary = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, unknown>
    expect(summary['gpuwarden/steps']).toBe(40)
    expect(summary['gpuwarden/findings_text']).toContain('loss_nan')
    const kept = await agent.get<{ hyperparameters: object }>('/api/v1/runs/tracked')
    expect(kept.hyperparameters).toEqual({ lr: 0.1, api_key: '***' })
  } finally {
    await agent.stop()
  }
}, 180_000)

it('wandb reads the page as the documentation says, and only what was asked for', async ({ skip }) => {
  if (missing !== null) skip(missing)
  const documented = /```python\n([\s\S]+?)```/.exec(readFileSync(DOCUMENT, 'utf8'))?.[1] ?? ''
  expect(documented).toContain('x_stats_open_metrics_endpoints')
  const agent = await RunningAgent.start(['--source', 'demo', '--demo-gpus', '2'])
  const folder = temporaryFolder()
  const program = `${documented.replace('http://127.0.0.1:4780', agent.url)}\nimport time\ntime.sleep(6)\nwandb.finish()\n`
  const env = { ...process.env, WANDB_MODE: 'offline', WANDB_DIR: folder, WANDB_SILENT: 'true', WANDB_X_STATS_SAMPLING_INTERVAL: '1' }
  try {
    await run(python, ['-c', program], { env, cwd: folder, timeout: 120_000 })
  } finally {
    await agent.stop()
  }
  const file = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('.wandb')) ?? ''
  const written = new Set(readFileSync(join(folder, file), 'latin1').match(/openmetrics\.gpuwarden\.\w+/g))
  const asked = [...documented.matchAll(/"gpuwarden\.(gpu_\w+)"/g)].map(([, name = '']) => `openmetrics.gpuwarden.${name}`)
  expect(asked.length).toBeGreaterThan(2)
  expect([...written].sort()).toEqual(asked.sort())
}, 180_000)
