import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Heartbeat } from './heartbeat.ts'
import { gpuSample, MINUTE, pretendWorld, recordedLog, tickOf } from './pretend-world.contract.ts'

async function listener(status = 200): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      asked.push(`${request.method} ${request.url} ${body}`.trim())
      response.writeHead(status).end('thanks')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret-uuid`, asked }
}

describe('the heartbeat', () => {
  it('beats while GPUs are watched, and stops when nothing is measured any more', async () => {
    const { url, asked } = await listener()
    const world = pretendWorld({ settings: { 'alerts.heartbeat_url': url, 'alerts.heartbeat_minutes': 2 } })
    await world.pass(5 * MINUTE, MINUTE)
    expect(asked).toEqual([])
    for (let minute = 0; minute < 6; minute++) {
      world.alerts.accept({ type: 'tick', tick: tickOf(world.at, [gpuSample('GPU-0', world.at, {})]) })
      await world.pass(MINUTE, MINUTE)
    }
    expect(asked).toEqual(['GET /secret-uuid', 'GET /secret-uuid', 'GET /secret-uuid'])
    await world.pass(20 * MINUTE, MINUTE)
    expect(asked.length).toBeLessThanOrEqual(4)
    expect(world.alerts.health().heartbeat).toMatchObject({ failed: 0, lastFault: null })
  })

  it('posts the name of the host where that is wanted', async () => {
    const { url, asked } = await listener()
    await new Heartbeat({ url, method: 'POST', everyMs: 1, host: 'box', log: recordedLog() }).beat(0, true)
    expect(asked).toEqual(['POST /secret-uuid {"host":"box"}'])
  })

  it('counts a failure, logs it once, and keeps the address to itself', async () => {
    const { url } = await listener(500)
    const log = recordedLog()
    const heartbeat = new Heartbeat({ url, method: 'GET', everyMs: 10, host: 'box', log })
    await heartbeat.beat(0, true)
    await heartbeat.beat(5, true)
    await heartbeat.beat(10, true)
    expect(heartbeat.health()).toEqual({ sent: 0, failed: 2, lastFault: 'the server answered 500' })
    expect(log.lines.length).toBe(1)
    expect(JSON.stringify(log.lines)).not.toContain('secret-uuid')
    const nowhere = new Heartbeat({ url: 'http://127.0.0.1:1/secret-uuid', method: 'GET', everyMs: 10, host: 'box', log })
    await nowhere.beat(0, true)
    expect(nowhere.health()).toMatchObject({ failed: 1, lastFault: expect.stringContaining('fetch failed') })
    expect(JSON.stringify([log.lines, nowhere.health()])).not.toContain('secret-uuid')
  })
})
