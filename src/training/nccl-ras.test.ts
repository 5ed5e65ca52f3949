import { createServer, type Server } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { askRas, parseRas } from './nccl-ras.ts'

const rank = (number: number, calls: number) => ({
  rank: number,
  host: '192.0.2.2',
  pid: 400 + number,
  status: { init_state: 0, async_error: 0, abort_flag: false },
  collective_counts: { Broadcast: 2, AllReduce: calls },
})
const status = (counts: readonly number[], missing = '') =>
  `SERVER PROTOCOL 2\nOK\nOK\n{ "nccl_version": "2.28.9", "communicators": [ { "hash": "0x80d0", "size": ${counts.length}, "ranks": ${JSON.stringify(
    counts.map((calls, number) => rank(number, calls)),
  )}, "missing_ranks": [ ${missing} ] } ], "ras": { "timeouts_count": 0 } }\n`

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** Answers each client with the next text. */
async function ras(...answers: readonly string[]): Promise<{ port: number; asked: string[] }> {
  const asked: string[] = []
  let next = 0
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (said) => {
      asked.push(String(said))
      socket.end(answers[Math.min(next++, answers.length - 1)] ?? '')
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return { asked, port: typeof address === 'object' && address ? address.port : 0 }
}

describe('NCCL’s RAS service', () => {
  it('says who called how many collectives', () => {
    expect(parseRas(status([40, 39]))?.communicators).toEqual([
      {
        hash: '0x80d0',
        size: 2,
        ranks: [
          { rank: 0, pid: 400, calls: 42, isDead: false },
          { rank: 1, pid: 401, calls: 41, isDead: false },
        ],
      },
    ])
  })

  it('names missing ranks, also without the commas that 2.28.9 leaves out', () => {
    const missing =
      '{ "rank": 2, "pid": 9, "status": { "considered_dead": true } }\n{ "rank": 3, "pid": 8, "status": { "unresponsive": true } }'
    expect(parseRas(status([1, 1], missing))?.communicators[0]?.ranks.slice(2)).toEqual([
      { rank: 2, pid: 9, calls: null, isDead: true },
      { rank: 3, pid: 8, calls: null, isDead: false },
    ])
  })

  it('answers in text only before 2.28.7: its errors and warnings are passed on', () => {
    const text =
      'SERVER PROTOCOL 2\nOK\nNCCL version 2.27.1\n\nErrors\n======\n\n#0-0 INCOMPLETE\n  Missing 1 rank\n\nWarnings\n========\n\n'
    expect(parseRas(text)).toEqual({ communicators: [], notes: ['#0-0 INCOMPLETE', 'Missing 1 rank'] })
    expect(parseRas('HTTP/1.1 400 Bad Request\r\n')).toBeNull()
    expect(parseRas('SERVER PROTOCOL 2\nOK\n{ "communicators": [')).toEqual({ communicators: [], notes: [] })
  })

  it('is asked twice: counts that move say nothing', async () => {
    const still = await ras(status([40, 39]))
    expect((await askRas(still.port))?.communicators[0]?.ranks.map(({ calls }) => calls)).toEqual([42, 41])
    expect(still.asked[0]).toContain('SET FORMAT json\n')
    const moving = await ras(status([40, 39]), status([41, 40]))
    expect((await askRas(moving.port))?.communicators[0]?.ranks.map(({ calls }) => calls)).toEqual([null, null])
  })

  it('is absent on most machines', async () => {
    const { port } = await ras('')
    for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
    expect(await askRas(port)).toBeNull()
  })
})
