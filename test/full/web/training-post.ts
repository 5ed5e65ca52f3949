import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { FIXTURES } from '../../program.ts'

async function send(url: string, path: string, body: string, type: string): Promise<void> {
  const answer = await fetch(url + path, { method: 'POST', body, headers: { 'content-type': type } })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
}

/** The run of an H200 that ran out of memory, with who held it, posted as the SDK does it. */
export async function postOutOfMemory(url: string, id: string): Promise<void> {
  const { report, message } = JSON.parse(readFileSync(join(FIXTURES, 'out-of-memory/runs/d9d1d91b7e09196e.run.json'), 'utf8')) as {
    readonly report: Readonly<Record<string, unknown>>
    readonly message: string
  }
  const long = '/home/user/a-project-with-a-long-name/source/models/transformer_block.py'
  const more = {
    growth: { bytes: 141e9, steps: 260, bytes_per_step: 545_259_520, seconds: 52.1 },
    holders: [{ file: long, line: 118, function: 'TransformerBlock.forward', bytes: 128 * 1024 ** 3, blocks: 262 }],
    snapshot: { path: `${long.slice(0, -3)}/oom-${id}-rank0-1794753480.pickle`, reason: null },
  }
  const post = (path: string, body: unknown) => send(url, path, JSON.stringify(body), 'application/json')
  await post('/api/v1/runs', { id, name: id })
  await post(`/api/v1/runs/${id}/report`, { ...report, ...more })
  await post(`/api/v1/runs/${id}/end`, { outcome: 'oom', message })
}

/** A training with several ranks, posted as the SDK does it. */
export async function postTraining(url: string, id: string, ranks: number, steps: number, name = id): Promise<void> {
  const post = (path: string, body: string, type = 'application/json') => send(url, path, body, type)
  await post(
    '/api/v1/runs',
    JSON.stringify({ id, name, user: 'ada', framework: 'pytorch', world_size: ranks, gpus: ['0'], total_steps: steps * 2 }),
  )
  const now = Date.now()
  for (let rank = 0; rank < ranks; rank++) {
    const lines = Array.from({ length: steps }, (_, index) => {
      const slow = rank === ranks - 1 ? 1.6 : 1
      return JSON.stringify({
        seq: index + 1,
        rank,
        step: index,
        t: now - (steps - index) * 500,
        epoch: Math.floor(index / 20),
        loss: index === 5 ? 'NaN' : 2.5 * Math.exp(-index / 40) + 0.02 * ((index * 7) % 5),
        lr: 1e-3,
        grad_norm: 1 + ((index * 13) % 7) / 10,
        throughput: 900,
        step_seconds: 0.5 * slow,
        phases: { data: 0.05, forward: 0.2, backward: 0.25 * slow },
        alloc: {
          allocated: (9000 + index) * 1024 ** 2,
          reserved: 12_000 * 1024 ** 2,
          active: 9500 * 1024 ** 2,
          inactive_split: 300 * 1024 ** 2,
        },
        custom: { accuracy: index / steps },
      })
    })
    await post(`/api/v1/runs/${encodeURIComponent(id)}/steps`, `${lines.join('\n')}\n`, 'application/x-ndjson')
  }
}
