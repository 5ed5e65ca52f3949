/** The commands that print once and end, and the library, as a user meets them. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from './fake-nvml/index.ts'
import { FIXTURES, RunningAgent, run, temporaryFolder, until } from './program.ts'

const EXAMPLE = fileURLToPath(new URL('../examples/gpu-monitor.js', import.meta.url))
const NO_GPU = { GPUWARDEN_ROOT: join(FIXTURES, 'empty') }

describe('status', () => {
  it('gives the memory status report in its shape', async () => {
    const script = fakeNvmlScript({ gpus: 2, memory_total: 12_348_030_976, memory_used: 8_589_934_592, memory_reserved: 0 })
    const { code, stdout } = await run(['status', '--json', '--source', 'nvidia'], { GPUWARDEN_NVML: buildFakeNvml(), ...script.env })
    expect(code).toBe(0)
    const report = JSON.parse(stdout)
    expect(Object.keys(report)).toEqual(['timestamp', 'devices', 'summary'])
    expect(Object.keys(report.devices)).toEqual(['0', '1'])
    expect(report.devices['0'].current_usage).toMatchObject({
      allocated: 8_589_934_592,
      free: 3_758_096_384,
      total: 12_348_030_976,
      utilization_percent: 69.6,
    })
    expect(report.devices['0'].statistics).toMatchObject({ avg_utilization: 69.6, max_utilization: 69.6 })
    expect(report.devices['0'].statistics.samples_count).toBeGreaterThanOrEqual(2)
    expect(report.summary).toEqual({ total_devices: 2, total_memory_gb: 23, overall_utilization: 69.6, simulated: false })
  })

  it('says in words that there is no GPU, and simulates none', async () => {
    const { code, stdout, stderr } = await run(['status'], NO_GPU)
    expect([code, stdout]).toEqual([3, 'No GPU to show.\n'])
    expect(stderr).toContain('no GPU was found on this machine; --source demo shows simulated ones')
  })

  it('shows what the running agent knows, with its findings, and says so', { timeout: 120_000 }, async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-scenario', 'lost', '--demo-gpus', '3'])
    onTestFinished(async () => void (await agent.stop('SIGKILL')))
    const port = new URL(agent.url).port
    const isLost = async () =>
      (await agent.get<{ findings: { detector: string; message: string }[] }>('/api/v1/findings')).findings.find(
        ({ detector }) => detector === 'gpu_lost',
      )
    const { message } = await until('a GPU is lost', isLost, 90_000)
    const { code, stdout, stderr } = await run(['status', '--port', port])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^As the agent at http:\/\/127\.0\.0\.1:\d+ sees it\.\nThe GPUs are SIMULATED\.\nGPU +NAME/)
    expect(stdout).toMatch(/^\d+ findings?, \d+ alerts? open:$/m)
    expect(stdout).toContain(message)
    const report = JSON.parse((await run(['status', '--json', '--port', port, '--gpu', '1'])).stdout)
    expect(Object.keys(report.devices)).toEqual(['1'])
    expect(report).toMatchObject({
      agent: agent.url,
      findings: expect.arrayContaining([expect.objectContaining({ detector: 'gpu_lost' })]),
    })
    const own = await run(['status', '--port', '1'], NO_GPU)
    expect(own.stderr).toMatch(/^gpuwarden: no agent answers on port 1: this is one look, without findings\n/)
  })

  it('sums up a whole recording', async () => {
    const { code, stdout } = await run(['status', '--json', '--source', `replay:${join(FIXTURES, 'traces/healthy')}`])
    expect(code).toBe(0)
    expect(JSON.parse(stdout).devices['0'].statistics.samples_count).toBeGreaterThan(400)
  })

  it('says so and ends with code 5 when the driver hangs in its first read', async () => {
    const script = fakeNvmlScript({ gpus: 1, hang: 'nvmlDeviceGetUtilizationRates' })
    const { code, stdout, stderr } = await run(['status', '--source', 'nvidia', '--deadline', '0.5'], {
      GPUWARDEN_NVML: buildFakeNvml(),
      ...script.env,
    })
    expect(stdout).toMatch(/no sample/)
    expect(stderr).toMatch(/the nvidia driver is not responding/)
    expect(code).toBe(5)
  })

  it('ends with code 5 and advice where the driver cannot be talked to', async () => {
    const script = fakeNvmlScript({ init: 18 })
    const { code, stderr } = await run(['status'], { GPUWARDEN_NVML: buildFakeNvml(), ...script.env })
    expect(code).toBe(5)
    expect(stderr).toMatch(/different versions[\s\S]*gpuwarden doctor/)
  })
})

describe('metrics', () => {
  it('prints one scrape, in the sets that were asked for', async () => {
    const { code, stdout } = await run(['metrics', '--source', 'demo', '--metrics', 'native,dcgm'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^gpu_utilization_percent\{gpu="0",.*simulated="true"\} /m)
    expect(stdout).toMatch(/^DCGM_FI_DEV_GPU_UTIL\{gpu="0",UUID=/m)
  })

  it('names the sets there are when another is asked for', async () => {
    const { code, stderr } = await run(['metrics', '--metrics', 'nonsense'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/metrics\.sets .*native/)
  })
})

describe('doctor', () => {
  it('is content with a driver that answers', async () => {
    const { code, stdout } = await run(['doctor', '--json', '--port', '0'], { GPUWARDEN_NVML: buildFakeNvml() })
    const { ok, checks } = JSON.parse(stdout)
    expect(checks.filter((check: { state: string }) => check.state === 'missing')).toEqual([])
    expect(ok).toBe(true)
    expect(code).toBe(0)
    expect(checks.find((check: { name: string }) => check.name === 'nvidia').message).toMatch(/2 device\(s\)/)
  })

  it('ends with code 1 and says what to do where there is no GPU, or one without a driver', async () => {
    const none = await run(['doctor', '--port', '0'], NO_GPU)
    expect(none.code).toBe(1)
    expect(none.stdout).toMatch(/^MISSING gpu .*no GPU found/m)
    expect(none.stdout).toMatch(/→ .*--source demo/)
    const script = fakeNvmlScript({ init: 9 })
    const broken = await run(['doctor', '--port', '0'], { GPUWARDEN_NVML: buildFakeNvml(), ...script.env })
    expect(broken.stdout).toMatch(/MISSING/)
    expect(broken.code).toBe(1)
  })
})

describe('config', () => {
  it('says where each value came from and shows no secret', async () => {
    const { code, stdout } = await run(['config', '--interval', '2', '--token', 'correct-horse-battery'], {
      EMAIL_PASSWORD: 'hunter2hunter2',
      SMTP_SERVER: 'mail.example.org',
    })
    expect(code).toBe(0)
    expect(stdout).toMatch(/^interval: 2 +# flag --interval$/m)
    expect(stdout).toMatch(/^email\.server: "mail\.example\.org" +# environment SMTP_SERVER$/m)
    expect(stdout).toMatch(/^server\.token: "\*{8}"/m)
    expect(stdout).not.toMatch(/correct-horse|hunter2/)
  })
})

describe('the library', () => {
  it('runs its example', async () => {
    const child = spawn(process.execPath, [EXAMPLE], {
      env: { ...process.env, GPUWARDEN_SOURCE: 'demo' },
      cwd: temporaryFolder(),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data) => {
        text += data
      })
    const code = await new Promise((resolve) => child.once('close', resolve))
    expect(text).toMatch(/^GPU 0 Simulated .* \(SIMULATED\): \d+%, \d+ MiB, \d+ processes$/m)
    expect(code).toBe(0)
  })
})
