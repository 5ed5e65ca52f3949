import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { alertsEventSchema } from '../core/alert-schema.ts'
import {
  alertsEvent,
  finding,
  openStream,
  PretendNews,
  type Running,
  type StreamClient,
  startServer,
  tickEvent,
  trainingStep,
  xid,
} from './pretend-agent.contract.ts'

const running: Running[] = []
const start = async (...options: Parameters<typeof startServer>) => {
  const one = await startServer(...options)
  running.push(one)
  return one
}
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ server }) => server.close()))
})

const names = (client: StreamClient) => client.events.map(({ event }) => event)
const seqs = (client: StreamClient) =>
  client.events.filter(({ event }) => event === 'tick').map(({ data }) => (data.tick as { seq: number }).seq)
const count = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)
const breathe = () => new Promise((resolve) => setImmediate(resolve))

/** Waits for something that no event announces; the test's own time limit ends it. */
async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10))
}

async function clientsOf({ url }: Running): Promise<number> {
  const health = (await (await fetch(`${url}/api/v1/health`)).json()) as { stream: { clients: number } }
  return health.stream.clients
}

describe('the stream', () => {
  it('greets with how a recording is played, so that its next jump is noticed, and never says that it starts over', async () => {
    const { server, url } = await start()
    const playback = { state: 'paused', at: 5, speed: 1, jumps: 2 } as const
    server.sink.accept({ type: 'playback', playback })
    const client = await openStream(`${url}/api/v1/stream`)
    server.sink.accept({ type: 'restart' })
    server.sink.accept({ type: 'playback', playback: { ...playback, jumps: 3 } })
    await client.until(() => client.events.length === 5)
    expect(names(client)).toEqual(['hello', 'devices', 'health', 'playback', 'playback'])
    expect(client.events.at(-2)?.data).toEqual({ type: 'playback', playback })
  })

  it('greets with who it is and what is there, then sends what happens', async () => {
    const { server, url } = await start()
    const client = await openStream(`${url}/api/v1/stream`)
    expect(client.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      connection: 'close',
    })
    server.sink.accept(tickEvent(1))
    server.sink.accept({ type: 'finding', finding: finding(null) })
    server.sink.accept({ type: 'steps', steps: [trainingStep(Number.NaN)], provenance: 'live' })
    await client.until(() => client.events.length === 6)
    expect(names(client)).toEqual(['hello', 'devices', 'health', 'tick', 'finding', 'steps'])
    const [hello, devices, health, tick] = client.events
    expect(hello?.data).toMatchObject({ type: 'hello', version: '9.9.9', hostname: 'pretend', retryMs: 2000 })
    expect(devices?.data.devices).toHaveLength(2)
    expect(health?.data.health).toHaveLength(1)
    expect([devices?.id, health?.id]).toEqual([null, null])
    expect([hello?.id, tick?.id]).toEqual([`${hello?.data.boot}-0`, `${hello?.data.boot}-1`])
    expect(tick?.data).toEqual(JSON.parse(JSON.stringify(tickEvent(1))))
    expect(client.events[5]?.data).toMatchObject({ steps: [{ loss: 'NaN', gradientNorm: 'Infinity', throughputPerSecond: null }] })
    client.close()
  })

  it('goes on after Last-Event-ID: every event once, by header and by query', async () => {
    const { server, url } = await start()
    const first = await openStream(`${url}/api/v1/stream`)
    for (const seq of count(1, 10)) server.sink.accept(tickEvent(seq))
    await first.until(() => seqs(first).length === 10)
    const last = first.events.at(-1)?.id ?? ''
    first.close()
    for (const seq of count(11, 200)) server.sink.accept(tickEvent(seq))
    const second = await openStream(`${url}/api/v1/stream?types=tick`, { 'last-event-id': last })
    const third = await openStream(`${url}/api/v1/stream?types=tick&lastEventId=${last}`)
    for (const seq of count(201, 220)) server.sink.accept(tickEvent(seq))
    for (const client of [second, third]) {
      await client.until(() => seqs(client).includes(220))
      expect(seqs(client)).toEqual(count(11, 220))
      expect(client.events[0]).toMatchObject({ event: 'hello', id: null })
      expect(names(client)).not.toContain('reset')
      client.close()
    }
    const upToDate = await openStream(`${url}/api/v1/stream?types=tick`, { 'last-event-id': second.events.at(-1)?.id ?? '' })
    server.sink.accept(tickEvent(221))
    await upToDate.until(() => seqs(upToDate).length > 0)
    expect(names(upToDate)).toEqual(['hello', 'tick'])
    upToDate.close()
  })

  it('begins anew, and says so, when what is missing is gone or was of another boot', async () => {
    const { server, url } = await start({ streamLimits: { ringEvents: 5 } })
    const first = await openStream(`${url}/api/v1/stream`)
    await first.until(() => first.events.length > 0)
    for (const seq of count(1, 20)) server.sink.accept(tickEvent(seq))
    const boot = first.events[0]?.data.boot
    const cases = [
      [`${boot}-3`, 'too_old'],
      ['abcdef-19', 'another_boot'],
      [`${boot}-99`, 'another_boot'],
      ['<junk>', 'another_boot'],
    ]
    for (const [id = '', reason] of cases) {
      const client = await openStream(`${url}/api/v1/stream`, { 'last-event-id': id })
      await client.until(() => names(client).includes('reset'))
      expect(client.events.at(-1)).toMatchObject({ id: `${boot}-20`, data: { type: 'reset', reason } })
      client.close()
    }
    const inReach = await openStream(`${url}/api/v1/stream`, { 'last-event-id': `${boot}-15` })
    await inReach.until(() => seqs(inReach).length === 5)
    expect(seqs(inReach)).toEqual(count(16, 20))
    inReach.close()
  })

  it('keeps events only while somebody could go on from them', async () => {
    const { server, url } = await start({ streamLimits: { ringEvents: 5 } })
    const stream = async () =>
      ((await (await fetch(`${url}/api/v1/health`)).json()) as { stream: { clients: number; bufferedEvents: number; lastEventId: string } })
        .stream
    for (const seq of count(1, 20)) server.sink.accept(tickEvent(seq))
    const told = await stream()
    expect(told).toMatchObject({ bufferedEvents: 0, lastEventId: expect.stringMatching(/-20$/) })
    for (const seq of count(21, 24)) server.sink.accept(tickEvent(seq))
    const client = await openStream(`${url}/api/v1/stream?types=tick`, { 'last-event-id': told.lastEventId })
    await client.until(() => seqs(client).length === 4)
    expect(seqs(client)).toEqual(count(21, 24))
    client.close()
    while ((await stream()).clients > 0) await breathe()
    for (const seq of count(25, 40)) server.sink.accept(tickEvent(seq))
    expect((await stream()).bufferedEvents).toBe(0)
  })

  it('sends alerts like any other event: by type, by GPU, and after Last-Event-ID', async () => {
    const news = new PretendNews()
    const { server, url } = await start({ alertNews: news })
    const client = await openStream(`${url}/api/v1/stream?types=alerts`)
    const other = await openStream(`${url}/api/v1/stream?types=alerts&gpus=1`)
    news.say(alertsEvent(1))
    news.say(alertsEvent(2, ['GPU-0000-1', null]))
    await client.until(() => client.events.length === 3)
    await other.until(() => other.events.length === 2)
    expect(names(client)).toEqual(['hello', 'alerts', 'alerts'])
    expect(client.events[2]?.data).toEqual(alertsEvent(2, ['GPU-0000-1', null]))
    expect(alertsEventSchema.parse(other.events[1]?.data).at).toBe(2)
    const last = client.events[1]?.id ?? ''
    client.close()
    other.close()
    server.sink.accept(tickEvent(3))
    news.say(alertsEvent(4))
    const back = await openStream(`${url}/api/v1/stream?types=alerts`, { 'last-event-id': last })
    await back.until(() => back.events.length === 3)
    expect(back.events.slice(1).map(({ data }) => data.at)).toEqual([2, 4])
    back.close()
  })

  it('follows the alerts only while somebody listens or could go on', async () => {
    const news = new PretendNews()
    const one = await start({ alertNews: news, streamLimits: { ringEvents: 5 } })
    one.server.sink.accept(tickEvent(1))
    expect(news.listeners.size).toBe(0)
    const client = await openStream(`${one.url}/api/v1/stream`)
    const twin = await openStream(`${one.url}/api/v1/stream`)
    expect(news.listeners.size).toBe(1)
    client.close()
    twin.close()
    while ((await clientsOf(one)) > 0) await breathe()
    for (const seq of count(2, 6)) one.server.sink.accept(tickEvent(seq))
    expect(news.listeners.size).toBe(1)
    for (const seq of count(7, 9)) one.server.sink.accept(tickEvent(seq))
    expect(news.listeners.size).toBe(0)
    const late = await openStream(`${one.url}/api/v1/stream`)
    expect(news.listeners.size).toBe(1)
    late.close()
    await one.server.close()
    expect(news.listeners.size).toBe(0)
  })

  it('sends only the types and the GPUs that are asked for', async () => {
    const { server, url } = await start()
    const some = await openStream(`${url}/api/v1/stream?types=tick,finding&gpus=1`)
    const twin = await openStream(`${url}/api/v1/stream?types=tick,finding&gpus=1`)
    const others = await openStream(`${url}/api/v1/stream?gpus=GPU-0000-0,1`)
    const { tick } = tickEvent(1) as Extract<ReturnType<typeof tickEvent>, { type: 'tick' }>
    server.sink.accept({ type: 'tick', tick: { ...tick, events: [xid('GPU-0000-0'), xid(null)] } })
    server.sink.accept({ type: 'tick', tick: { ...tick, seq: 2, gpus: tick.gpus.slice(0, 1) } })
    server.sink.accept({ type: 'finding', finding: finding('GPU-0000-0') })
    server.sink.accept({ type: 'health', health: [] })
    server.sink.accept({ type: 'finding', finding: finding('GPU-0000-1') })
    for (const client of [some, twin]) {
      await client.until(() => names(client).includes('finding'))
      expect(names(client)).toEqual(['hello', 'tick', 'finding'])
      const shown = client.events[1]?.data.tick as {
        gpus: { gpu: string }[]
        processes: { gpu: string }[]
        events: { gpu: string | null }[]
      }
      expect(shown.gpus.map(({ gpu }) => gpu)).toEqual(['GPU-0000-1'])
      expect(shown.processes.map(({ gpu }) => gpu)).toEqual(['GPU-0000-1'])
      expect(shown.events.map(({ gpu }) => gpu)).toEqual([null])
      client.close()
    }
    await others.until(() => others.events.length === 8)
    expect(names(others)).toEqual(['hello', 'devices', 'health', 'tick', 'tick', 'finding', 'health', 'finding'])
    others.close()
  })

  it('refuses filters that mean nothing, but waits for GPUs that may still come', async () => {
    const one = await start()
    const status = async (query: string) => {
      const response = await fetch(`${one.url}/api/v1/stream?${query}`)
      return [response.status, ((await response.json()) as { error: { code: string } }).error.code]
    }
    expect(await status('types=ticks')).toEqual([400, 'invalid_parameter'])
    expect(await status('gpus=0,7')).toEqual([400, 'invalid_gpu'])
    expect(await status('gpu=0')).toEqual([400, 'unknown_parameter'])
    one.agent.gpuCount = 0
    const early = await openStream(`${one.url}/api/v1/stream?gpus=1&types=tick`)
    one.agent.gpuCount = 2
    one.server.sink.accept({ type: 'devices', devices: one.agent.gpus().map(({ info }) => info) })
    one.server.sink.accept(tickEvent(1))
    await early.until(() => names(early).includes('tick'))
    // Another GPU becomes number 1, as after a change of MIG or of a card.
    const [first, second] = one.agent.gpus()
    if (!first || !second) throw new Error('the pretended agent has two GPUs')
    Object.assign(one.agent, { gpus: () => [{ ...first, info: { ...first.info, index: 1, label: '1' } }] })
    one.server.sink.accept({ type: 'devices', devices: [first.info] })
    one.server.sink.accept(tickEvent(2))
    await early.until(() => seqs(early).includes(2))
    expect(early.events.slice(1).map(({ data }) => (data.tick as { gpus: { gpu: string }[] }).gpus.map(({ gpu }) => gpu))).toEqual([
      ['GPU-0000-1'],
      ['GPU-0000-0'],
    ])
    early.close()
  })

  it('makes an event into text once for all clients, and not at all for none', async () => {
    const { server, url } = await start()
    let made = 0
    const counted = (seq: number) => {
      const event = tickEvent(seq)
      return Object.assign(event, {
        toJSON: () => {
          made++
          return { ...event, toJSON: undefined }
        },
      })
    }
    server.sink.accept(counted(1))
    expect(made).toBe(0)
    const clients = await Promise.all([1, 2, 3].map(() => openStream(`${url}/api/v1/stream`)))
    const uninterested = await openStream(`${url}/api/v1/stream?types=run`)
    server.sink.accept(counted(2))
    for (const client of clients) await client.until(() => seqs(client).length === 1)
    expect(made).toBe(1)
    for (const client of [...clients, uninterested]) client.close()
  })

  it('drops a client that does not read, in bounded memory, while others get everything', async () => {
    const one = await start()
    const { server, url, port } = one
    const reader = await openStream(`${url}/api/v1/stream?types=tick`)
    const sleeper: Socket = connect(port, '127.0.0.1')
    sleeper.write('GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n')
    sleeper.once('data', () => sleeper.pause())
    sleeper.on('error', () => sleeper.destroy())
    await eventually(() => sleeper.isPaused())
    expect(await clientsOf(one)).toBe(2)
    const before = process.memoryUsage()
    let received = 0
    const tick = tickEvent(1, 8) as Extract<ReturnType<typeof tickEvent>, { type: 'tick' }>
    for (const seq of count(1, 10_000)) {
      server.sink.accept({ type: 'tick', tick: { ...tick.tick, seq } })
      if (seq % 50 === 0) {
        // The reader's events are counted and thrown away, so that only the server's memory is measured.
        await reader.until(() => seqs(reader).at(-1) === seq)
        expect(seqs(reader)).toEqual(count(received + 1, seq))
        received = seq
        reader.events.length = 0
      }
    }
    expect(received).toBe(10_000)
    expect(server.sink.dropped().count).toBe(1)
    expect(server.sink.dropped().reason).toContain('too slow')
    expect(await clientsOf(one)).toBe(1)
    const after = process.memoryUsage()
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(64 * 1024 * 1024)
    const { stream } = (await (await fetch(`${url}/api/v1/health`)).json()) as { stream: { bufferedBytes: number; bufferedEvents: number } }
    // An event's size is guessed until a client wants it.
    expect(stream.bufferedBytes).toBeLessThanOrEqual(6 * 1024 * 1024 + 16 * 1024)
    expect(stream.bufferedEvents).toBeLessThanOrEqual(600)
    expect(one.log.lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
    reader.close()
    sleeper.destroy()
  }, 60_000)

  it('drops a client that takes nothing for too long, although little is sent', async () => {
    const one = await start({ streamLimits: { drainTimeoutMs: 200, ringEvents: 100_000, ringBytes: 1e9 } })
    const sleeper = connect(one.port, '127.0.0.1')
    sleeper.write('GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n')
    sleeper.once('data', () => sleeper.pause())
    sleeper.on('error', () => sleeper.destroy())
    await eventually(() => sleeper.isPaused())
    for (const seq of count(1, 1000)) {
      one.server.sink.accept(tickEvent(seq, 8))
      if (seq % 20 === 0) await breathe()
    }
    await eventually(() => one.server.sink.dropped().count === 1)
    expect(one.server.sink.dropped().reason).toContain('read nothing for 0.2 s')
    sleeper.destroy()
  })

  it('replays more than a socket takes at once', async () => {
    const { server, url } = await start({ streamLimits: { clientBytes: 20_000 } })
    const first = await openStream(`${url}/api/v1/stream`)
    await first.until(() => first.events.length > 0)
    const boot = first.events[0]?.data.boot
    first.close()
    for (const seq of count(1, 200)) server.sink.accept(tickEvent(seq, 8))
    const client = await openStream(`${url}/api/v1/stream?types=tick&lastEventId=${boot}-0`)
    server.sink.accept(tickEvent(201, 8))
    await client.until(() => seqs(client).includes(201))
    expect(seqs(client)).toEqual(count(1, 201))
    client.close()
  })

  it('takes as many clients as configured, and forgets those that left', async () => {
    const one = await start({}, { 'server.max_clients': 2 })
    const clients = [await openStream(`${one.url}/api/v1/stream`), await openStream(`${one.url}/api/v1/stream`)]
    const refused = await fetch(`${one.url}/api/v1/stream`)
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(await refused.json()).toMatchObject({ error: { code: 'too_many_clients' } })
    clients[0]?.close()
    let left = await clientsOf(one)
    while (left !== 1) left = await clientsOf(one)
    const next = await openStream(`${one.url}/api/v1/stream`)
    await next.until(() => names(next).includes('health'))
    next.close()
    clients[1]?.close()
    expect(one.server.sink.dropped().count).toBe(0)
  })

  it('beats while nothing happens', async () => {
    const { url } = await start({ streamLimits: { heartbeatMs: 20 } })
    const client = await openStream(`${url}/api/v1/stream`)
    await client.until(() => client.comments >= 2)
    client.close()
  })

  it('says goodbye when the server stops', async () => {
    const one = await startServer()
    const client = await openStream(`${one.url}/api/v1/stream`)
    await client.until(() => client.events.length === 3)
    await one.server.close()
    await client.until(() => client.ended)
    expect(client.events.at(-1)).toMatchObject({ event: 'bye', id: null, data: { type: 'bye' } })
    one.server.sink.accept(tickEvent(1))
  })
})
