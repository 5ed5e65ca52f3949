import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NOW, type Running, startServer } from './pretend-agent.contract.ts'
import { SCHEMAS } from './schemas.ts'

let running: Running
beforeAll(async () => {
  running = await startServer()
})
afterAll(() => running.server.close())

const ask = async (query: string) => {
  const response = await fetch(`${running.url}/api/v1/history?${query}`)
  return { status: response.status, body: await response.json() }
}

describe('/api/v1/history', () => {
  it('understands gpu, field, from, to and step in all their forms', async () => {
    const cases: readonly [string, object][] = [
      ['gpu=1&field=powerWatts', { gpu: 'GPU-0000-1', fields: ['powerWatts'], from: NOW - 300_000, to: NOW, stepMs: null }],
      ['gpu=GPU-0000-0&field=powerWatts&from=-1h&step=10', { gpu: 'GPU-0000-0', from: NOW - 3_600_000, to: NOW, stepMs: 10_000 }],
      ['gpu=0&field=powerWatts,fanRatio&field=fanRatio', { fields: ['powerWatts', 'fanRatio'] }],
      [`gpu=0&field=powerWatts&from=${NOW - 5000}&to=now&step=0.5`, { from: NOW - 5000, to: NOW, stepMs: 500 }],
      [
        'gpu=0&field=powerWatts&from=2025-10-09T10:00:00%2B02:00&to=2025-10-09T08:30:00Z',
        { from: Date.UTC(2025, 9, 9, 8), to: Date.UTC(2025, 9, 9, 8, 30) },
      ],
      ['gpu=0&field=powerWatts&from=0&to=-1d', { from: 0, to: NOW - 86_400_000 }],
      ['gpu=0&field=powerWatts&from=-365d&points=1500', { from: NOW - 365 * 86_400_000, stepMs: null, points: 1500 }],
    ]
    for (const [query, expected] of cases) {
      const { status, body } = await ask(query)
      expect(status, query).toBe(200)
      SCHEMAS.HistoryAnswer.parse(body)
      expect(running.history.asked.at(-1), query).toMatchObject(expected)
    }
  })

  it('answers in columns, as the history gave them', async () => {
    const { body } = await ask('gpu=0&field=powerWatts')
    expect(body).toEqual({
      gpu: 'GPU-0000-0',
      fields: ['powerWatts'],
      stepMs: 0,
      data: [
        [NOW - 1000, NOW],
        [1, null],
      ],
      min: null,
      max: null,
    })
  })

  it('needs no gpu where there is only one', async () => {
    running.agent.gpuCount = 1
    expect((await ask('field=powerWatts')).status).toBe(200)
    running.agent.gpuCount = 2
  })

  it('says what is wrong, and what to do about it', async () => {
    const cases: readonly [string, string, RegExp, RegExp][] = [
      ['field=powerWatts', 'missing_parameter', /"gpu" is missing/, /There are: 0, 1/],
      ['gpu=9&field=powerWatts', 'invalid_gpu', /"9"/, /There are: 0, 1/],
      ['gpu=0&gpu=1&field=powerWatts', 'invalid_parameter', /"gpu" was given 2 times/, /openapi/],
      ['gpu=0', 'missing_parameter', /"field" is missing/, /utilizationRatio/],
      ['gpu=0&field=,', 'missing_parameter', /"field" is missing/, /utilizationRatio/],
      ['gpu=0&field=powerWatts,memory', 'invalid_field', /"memory" is not a reading/, /memoryUsedBytes/],
      ['gpu=0&field=powerWatts&from=yesterday', 'invalid_time', /from: "yesterday" is not a time/, /-5m/],
      ['gpu=0&field=powerWatts&from=1760000000', 'invalid_time', /looks like epoch seconds/, /milliseconds/],
      ['gpu=0&field=powerWatts&to=2026-13-45', 'invalid_time', /^to: /, /ISO/],
      ['gpu=0&field=powerWatts&from=-1m&to=-1h', 'invalid_range', /must be before/, /Swap/],
      ['gpu=0&field=powerWatts&step=0', 'invalid_step', /greater than 0/, /60/],
      ['gpu=0&field=powerWatts&step=-5', 'invalid_step', /greater than 0/, /60/],
      ['gpu=0&field=powerWatts&step=1m', 'invalid_step', /number of seconds/, /60/],
      ['gpu=0&field=powerWatts&from=-365d&step=1', 'invalid_step', /31536000 points/, /step of 631 or more/],
      ['gpu=0&field=powerWatts&points=1', 'invalid_step', /points must be a whole number from 2 to 10000/, /pixels/],
      ['gpu=0&field=powerWatts&points=10001', 'invalid_step', /points must be/, /pixels/],
      ['gpu=0&field=powerWatts&fields=x', 'unknown_parameter', /no parameter "fields"/, /openapi/],
    ]
    const before = running.history.asked.length
    for (const [query, code, message, hint] of cases) {
      const { status, body } = await ask(query)
      expect(status, query).toBe(400)
      const { error } = SCHEMAS.Error.parse(body)
      expect(error.code, query).toBe(code)
      expect(error.message, query).toMatch(message)
      expect(error.hint, query).toMatch(hint)
    }
    expect(running.history.asked).toHaveLength(before)
  })

  it('is of the host, too', async () => {
    const response = await fetch(`${running.url}/api/v1/host/history?field=cpuRatio,load1&from=-7d`)
    expect(response.status).toBe(200)
    expect(running.history.asked.at(-1)).toMatchObject({ gpu: 'host', fields: ['cpuRatio', 'load1'], from: NOW - 7 * 86_400_000 })
    const refused = await fetch(`${running.url}/api/v1/host/history?field=powerWatts`)
    expect([refused.status, JSON.stringify(await refused.json())]).toEqual([400, expect.stringContaining('is not a reading of the host')])
  })
})
