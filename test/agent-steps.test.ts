/** The memory commands see the training that a running agent is told of. */
import { afterEach, expect, it } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from './fake-nvml/index.ts'
import { RunningAgent, run } from './program.ts'

let agent: RunningAgent | null = null
afterEach(async () => {
  agent?.child.kill('SIGKILL')
  await agent?.ended
  agent = null
})

const MEBIBYTE = 1024 ** 2

it('frag shows the allocator figures of a live run, and leak calls it by its name', async () => {
  const script = fakeNvmlScript({ gpus: 1 })
  const env = { GPUWARDEN_NVML: buildFakeNvml(), ...script.env }
  agent = await RunningAgent.start(['--source', 'nvidia'], env)
  const { url } = agent
  await fetch(`${url}/api/v1/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'live-run', name: 'live' }),
  })
  let seq = 0
  const poster = setInterval(() => {
    seq++
    const alloc = {
      allocated: 600 * MEBIBYTE,
      reserved: 1000 * MEBIBYTE,
      active: 600 * MEBIBYTE,
      inactive_split: 250 * MEBIBYTE,
      retries: 0,
      ooms: 0,
    }
    const line = JSON.stringify({ seq, rank: 0, step: seq, t: Date.now(), loss: 'NaN', alloc })
    void fetch(`${url}/api/v1/runs/live-run/steps`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: `${line}\n`,
    }).catch(() => undefined)
  }, 100)
  try {
    const { code, stdout, stderr } = await run(['frag', '--source', 'nvidia', '--duration', '3', '--run', 'live-run', '--json'], {
      ...env,
      GPUWARDEN_SERVER_PORT: new URL(url).port,
    })
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(stdout).toContain('live-run')
    expect(stdout).toMatch(/0\.25/)
    const leak = await run(['leak', '--source', 'nvidia', '--duration', '3'], { ...env, GPUWARDEN_SERVER_PORT: new URL(url).port })
    expect(leak.stdout).toContain('Run live: allocated memory')
    expect(leak.stdout).not.toContain('live-run')
  } finally {
    clearInterval(poster)
  }
})
