/** A real MLflow server: what the agent writes is read back through MLflow's own REST API. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RunningAgent, temporaryFolder, until } from '../program.ts'
import { pythonWith } from './python-packages.ts'
import { freePort, Server } from './servers.ts'

/** About 850 MB on disk, most of it the libraries of its web server and of data frames. */
const MLFLOW = {
  name: 'mlflow',
  packages: ['mlflow'],
  imports: 'import mlflow.server, sqlalchemy',
  installMs: 480_000,
  neededBytes: 3 * 1024 ** 3,
}

const SDK = fileURLToPath(new URL('../../python', import.meta.url))

interface Run {
  readonly info: { readonly run_id: string; readonly run_name: string; readonly status: string; readonly end_time?: number }
  readonly data: {
    readonly metrics?: readonly { readonly key: string; readonly value: number; readonly step: number }[]
    readonly tags?: readonly { readonly key: string; readonly value: string }[]
  }
}

interface Point {
  readonly key: string
  readonly value: number
  readonly timestamp: number
  readonly step: number
}

describe('MLflow', () => {
  let server: Server | undefined
  let missing: string | null = null
  let python = ''

  beforeAll(async () => {
    const found = await pythonWith(MLFLOW)
    if ('missing' in found) {
      missing = found.missing
      return
    }
    python = found.python
    const folder = temporaryFolder()
    const port = await freePort()
    const args = ['-m', 'mlflow', 'server', '--host', '127.0.0.1', '--port', String(port), '--workers', '1']
    const places = ['--backend-store-uri', `sqlite:///${folder}/mlflow.db`, '--default-artifact-root', `${folder}/artifacts`]
    // It makes its tables first, which takes a while on a slow disk.
    server = await Server.open(found.python, port, folder, [...args, ...places], '/health', 180_000)
  }, MLFLOW.installMs + 400_000)

  afterAll(async () => {
    await server?.stop()
  })

  async function api<T>(path: string, body?: object): Promise<T> {
    const request =
      body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const answer = await fetch(`${server?.url}/api/2.0/mlflow/${path}`, request)
    if (!answer.ok) throw new Error(`${path}: HTTP ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }

  const runOf = async (id: string) => (await api<{ run: Run }>(`runs/get?run_id=${id}`)).run
  const historyOf = async (id: string, key: string) =>
    (await api<{ metrics?: Point[] }>(`metrics/get-history?run_id=${id}&metric_key=${encodeURIComponent(key)}`)).metrics ?? []

  const start = (env: NodeJS.ProcessEnv) =>
    RunningAgent.start(['--source', 'demo', '--demo-gpus', '2', '--interval', '0.2'], {
      GPUWARDEN_PUSH_MLFLOW_URL: server?.url,
      GPUWARDEN_PUSH_MLFLOW_INTERVAL: '1',
      ...env,
    })

  it('gets a run of its own, with the names that it uses itself, and sees it end', async ({ skip }) => {
    if (missing !== null) skip(missing)
    const agent = await start({ GPUWARDEN_PUSH_MLFLOW_EXPERIMENT: 'a new experiment' })
    const run = await until(
      'a run has three batches',
      async () => {
        const { experiment } = await api<{ experiment: { experiment_id: string } }>(
          `experiments/get-by-name?experiment_name=${encodeURIComponent('a new experiment')}`,
        )
        const { runs = [] } = await api<{ runs?: Run[] }>('runs/search', { experiment_ids: [experiment.experiment_id] })
        return runs.find(({ data }) => data.metrics?.some(({ step }) => step >= 3))
      },
      60_000,
    )
    expect(run.info.status).toBe('RUNNING')
    const keys = run.data.metrics?.map(({ key }) => key) ?? []
    for (const gpu of [0, 1])
      for (const name of [
        'utilization_percentage',
        'memory_usage_megabytes',
        'memory_usage_percentage',
        'power_usage_watts',
        'power_usage_percentage',
      ])
        expect(keys).toContain(`system/gpu_${gpu}_${name}`)
    expect(keys).toEqual(expect.arrayContaining(['system/cpu_utilization_percentage', 'system/system_memory_usage_megabytes']))

    await agent.stop()
    const history = await historyOf(run.info.run_id, 'system/gpu_0_memory_usage_percentage')
    expect(history.map(({ step }) => step)).toEqual(history.map((_, at) => at))
    const logged = agent.lines('gpu_metrics').flatMap(({ gpu_index, memory_percent }) => (gpu_index === 0 ? Number(memory_percent) : []))
    expect(Math.max(...logged)).toBeGreaterThan(0)
    for (const { value, timestamp } of history) {
      // Each is the average of what the log has in full.
      expect(value).toBeGreaterThanOrEqual(Math.min(...logged) - 0.01)
      expect(value).toBeLessThanOrEqual(Math.max(...logged) + 0.01)
      expect(Math.abs(Date.now() - timestamp)).toBeLessThan(600_000)
    }
    const after = await runOf(run.info.run_id)
    expect(after.info.status).toBe('FINISHED')
    expect(Number(after.info.end_time)).toBeGreaterThan(0)
  }, 120_000)

  it('gets the figures and findings of a run with it, and gpuwarden its parameters', async ({ skip }) => {
    if (missing !== null) skip(missing)
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-scenario', 'idle'])
    const program = `
import gpuwarden, mlflow
gpuwarden.attach()
with mlflow.start_run() as started:
    with gpuwarden.run("tracked", run_id="tracked") as run:
        mlflow.log_params({"lr": 0.1, "hub_token": "abc"})
        for step in range(40): run.log(step=step, loss=1.0 if step < 20 else float("nan"))
print(started.info.run_id)`
    const env = { ...process.env, PYTHONPATH: SDK, MLFLOW_TRACKING_URI: server?.url, GPUWARDEN_URL: agent.url }
    const { stdout } = await promisify(execFile)(python, ['-c', program], { env, timeout: 100_000 })
    const { data } = await runOf(stdout.trim().split('\n').at(-1) ?? '')
    const kept = await agent.get<{ hyperparameters: object }>('/api/v1/runs/tracked')
    await agent.stop()
    expect(data.metrics?.find(({ key }) => key === 'gpuwarden/steps')?.value).toBe(40)
    expect(data.tags?.find(({ key }) => key === 'gpuwarden.worst_finding')?.value).toContain('NaN at step 20')
    expect(kept.hyperparameters).toEqual({ lr: 0.1, hub_token: '***' })
  }, 120_000)

  it('gets them into a run that somebody else began, and leaves that run to them', async ({ skip }) => {
    if (missing !== null) skip(missing)
    const { run } = await api<{ run: Run }>('runs/create', { experiment_id: '0', start_time: Date.now(), run_name: 'training' })
    const agent = await start({ MLFLOW_RUN_ID: run.info.run_id })
    await until('it has metrics', async () => ((await runOf(run.info.run_id)).data.metrics ?? []).length > 5, 60_000)
    const { code } = await agent.stop()
    expect(code).toBe(0)
    expect((await runOf(run.info.run_id)).info.status).toBe('RUNNING')
  }, 120_000)
})
