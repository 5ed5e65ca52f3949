/** A training with several ranks, posted as the SDK does it. */
export async function postTraining(url: string, id: string, ranks: number, steps: number, name = id): Promise<void> {
  const post = async (path: string, body: string, type = 'application/json') => {
    const answer = await fetch(url + path, { method: 'POST', body, headers: { 'content-type': type } })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  }
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
