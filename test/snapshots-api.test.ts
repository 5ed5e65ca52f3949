/** Memory snapshots over the API: uploads in pieces, files of runs, what is refused, and that nothing stays behind. */
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FIXTURES, RunningAgent, temporaryFolder } from './program.ts'
import { post } from './training-world.ts'

const TOKEN = 'correct horse battery'.replaceAll(' ', '-')
const LIMIT_MIB = 16
const bytesOf = (name: string) => readFileSync(join(FIXTURES, 'snapshots', `${name}.pickle.gz`))

interface Asked {
  readonly status: number
  readonly body: Record<string, unknown> & { readonly error?: { readonly code: string; readonly message: string } }
}

class Client {
  readonly #url: string
  readonly #token: string | null

  constructor(url: string, token: string | null = null) {
    this.#url = url
    this.#token = token
  }

  async ask(method: string, path: string, body?: unknown, type = 'application/json'): Promise<Asked> {
    const isBytes = body instanceof Uint8Array
    const response = await fetch(`${this.#url}/api/v1/snapshots${path}`, {
      method,
      signal: AbortSignal.timeout(20_000),
      headers: {
        ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(body === undefined ? {} : { 'content-type': isBytes ? 'application/octet-stream' : type }),
      },
      ...(body === undefined ? {} : { body: isBytes ? Buffer.from(body) : JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Asked['body'] }
  }

  async begin(name: string, bytes: number): Promise<string> {
    const { status, body } = await this.ask('POST', '', { name, bytes })
    expect(status).toBe(200)
    return body.id as string
  }

  async upload(name: string, content: Uint8Array, pieceBytes = 1 << 20): Promise<string> {
    const id = await this.begin(name, content.length)
    for (let at = 0; at < content.length; at += pieceBytes) {
      const { status } = await this.ask('PUT', `/${id}/content?offset=${at}`, content.subarray(at, at + pieceBytes))
      expect(status).toBe(200)
    }
    return id
  }

  async analyzed(id: string): Promise<Asked['body']> {
    for (let turn = 0; turn < 200; turn++) {
      const { status, body } = await this.ask('GET', `/${id}`)
      expect([200, 503]).toContain(status)
      if (status === 200 && body.state !== 'reading') return body
      await sleep(100)
    }
    throw new Error('the analysis did not end')
  }
}

const code = ({ status, body }: Asked) => [status, body.error?.code]

describe('snapshots over the API', () => {
  const temporary = temporaryFolder()
  let agent: RunningAgent
  let client: Client

  beforeAll(async () => {
    agent = await RunningAgent.start(['--source', 'demo'], { TMPDIR: temporary, GPUWARDEN_SERVER_MAX_UPLOAD_MB: String(LIMIT_MIB) })
    client = new Client(agent.url)
  })

  afterAll(async () => {
    await agent?.stop('SIGKILL')
  })

  const folders = () => readdirSync(temporary).filter((name) => name.startsWith('gpuwarden-uploads-'))

  it('takes a file in pieces, readable for nobody else, and shows it', async () => {
    const content = bytesOf('healthy')
    const id = await client.upload('my healthy.pickle.gz', content, 20_000)
    const [folder = ''] = folders()
    expect(statSync(join(temporary, folder)).mode & 0o777).toBe(0o700)
    expect(statSync(join(temporary, folder, id)).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(temporary, folder, id)).equals(content)).toBe(true)
    const { state, picture } = await client.analyzed(id)
    expect(state).toBe('ready')
    const [device] = (picture as { devices: { events: number; peak: object }[]; name: string }).devices
    expect(device).toMatchObject({ events: 4000, peak: { index: 213, allocatedBytes: 733_638_668 } })
    const columns = await client.ask('GET', `/${id}/columns?device=0&kind=category&from=100&to=300&count=50`)
    expect([columns.status, (columns.body.highestAt as number[]).length, columns.body.to]).toEqual([200, 50, 300])
    const moment = await client.ask('GET', `/${id}/moment?device=0&index=213`)
    expect(moment.body).toMatchObject({ index: 213, allocatedBytes: 733_638_668 })
    const { body } = await client.ask('GET', '')
    expect(body.snapshots).toContainEqual(
      expect.objectContaining({ id, name: 'my healthy.pickle.gz', kind: 'uploaded', bytes: content.length }),
    )
    expect(JSON.stringify(body)).not.toContain(temporary)
  })

  it('takes two uploads at once, and compares them', async () => {
    const [before, after] = await Promise.all([
      client.upload('a.pickle.gz', bytesOf('healthy'), 7000),
      client.upload('b.pickle', gunzipSync(bytesOf('leak'))),
    ])
    expect((await client.analyzed(after)).state).toBe('ready')
    const { status, body } = await client.ask('GET', `/${after}/diff?before=${before}&at=end`)
    expect(status).toBe(200)
    const [diff] = body.diffs as { rows: { change: string; line: string }[]; beforeBytes: number }[]
    expect(diff).toMatchObject({ beforeBytes: 590_790_660 })
    expect(diff?.rows[0]).toMatchObject({ change: 'new', line: '/home/ml/project/train/finetune.py:77 in <module>' })
    expect(code(await client.ask('GET', `/${after}/diff?before=nothing`))).toEqual([404, 'unknown_snapshot'])
  })

  it('says what is no snapshot, and what a file would have run', async () => {
    const wrong = await client.upload('notes.txt', Buffer.from('PK\u0003\u0004 not a pickle'))
    expect(await client.analyzed(wrong)).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching(/^notes\.txt cannot be read as a memory snapshot/),
    })
    const evil = await client.upload('evil.pickle', Buffer.from('\u0080\u0004cos\nsystem\n(S"touch /tmp/x"\ntR.', 'latin1'))
    expect(await client.analyzed(evil)).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching(/GLOBAL at byte 2 imports something/),
    })
    expect(code(await client.ask('GET', `/${wrong}/columns?from=0&to=5`))).toEqual([409, 'conflict'])
  })

  it('refuses what is too large, before and while it comes', async () => {
    const most = LIMIT_MIB * 1024 ** 2
    expect(code(await client.ask('POST', '', { name: 'x', bytes: most + 1 }))).toEqual([413, 'body_too_large'])
    const id = await client.begin('x', 1000)
    expect(code(await client.ask('PUT', `/${id}/content?offset=0`, new Uint8Array(1001)))).toEqual([413, 'body_too_large'])
    expect(code(await client.ask('GET', `/${id}`))).toEqual([503, 'unavailable'])
    expect((await client.ask('PUT', `/${id}/content?offset=0`, new Uint8Array(1000))).body).toMatchObject({ receivedBytes: 1000 })
    const huge = await client.begin('y', 5 * 1024 ** 2)
    expect(code(await client.ask('PUT', `/${huge}/content?offset=0`, new Uint8Array(4 * 1024 ** 2 + 1)))).toEqual([413, 'body_too_large'])
    expect(code(await client.ask('PUT', `/${huge}/content?offset=3`, new Uint8Array(10)))).toEqual([409, 'conflict'])
    expect(code(await client.ask('PUT', `/${huge}/content?offset=0`, { a: 1 }))).toEqual([415, 'unsupported_media_type'])
    expect(code(await client.ask('DELETE', `/${huge}`))).toEqual([200, undefined])
  })

  it('keeps room for new ones by removing the oldest', async () => {
    const first = await client.upload('first', new Uint8Array(10 * 1024 ** 2), 4 * 1024 ** 2)
    const second = await client.upload('second', new Uint8Array(10 * 1024 ** 2), 4 * 1024 ** 2)
    const { body } = await client.ask('GET', '')
    const ids = (body.snapshots as { id: string }[]).map(({ id }) => id)
    expect(ids).toContain(second)
    expect(ids).not.toContain(first)
    expect(existsSync(join(temporary, folders()[0] ?? '', first))).toBe(false)
    const unfinished = await client.begin('half', 6 * 1024 ** 2)
    expect(code(await client.ask('POST', '', { name: 'no room', bytes: 12 * 1024 ** 2 }))).toEqual([409, 'conflict'])
    await client.ask('DELETE', `/${unfinished}`)
  })

  it('knows files by ids alone', async () => {
    for (const id of ['..%2f..%2fetc%2fpasswd', '%2fetc%2fpasswd', 'u..', '.', '%00'])
      expect(code(await client.ask('GET', `/${id}`))[0]).toBe(404)
    expect(code(await client.ask('PUT', '/..%2f..%2ftmp%2fx/content?offset=0', new Uint8Array(1)))).toEqual([404, 'unknown_snapshot'])
    expect(code(await client.ask('DELETE', '/..%2f..%2ftmp'))).toEqual([404, 'unknown_snapshot'])
  })

  it('removes an upload with its file', async () => {
    const id = await client.upload('gone.pickle', bytesOf('healthy'))
    await client.analyzed(id)
    expect((await client.ask('DELETE', `/${id}`)).status).toBe(200)
    expect(existsSync(join(temporary, folders()[0] ?? '', id))).toBe(false)
    expect(code(await client.ask('GET', `/${id}`))).toEqual([404, 'unknown_snapshot'])
    expect(code(await client.ask('GET', `/${id}/moment?index=0`))).toEqual([409, 'conflict'])
  })

  it('lists what runs wrote, opens only files that the SDK can have made, and deletes none', async () => {
    const place = temporaryFolder()
    const path = (name: string) => join(place, name)
    writeFileSync(path('asked-1-2.pickle'), gunzipSync(bytesOf('leak')))
    symlinkSync(path('asked-1-2.pickle'), path('asked-9-9.pickle'))
    const runs = `${agent.url}/api/v1/runs`
    await post(runs, { id: 'snap', name: 'train.py', host: hostname() })
    await post(runs, { id: 'far', name: 'far.py', host: 'another-host' })
    const say = (run: string, recording: string, file: string) =>
      post(`${runs}/${run}/recordings/${recording}`, { kind: 'gpu', at: Date.now(), rank: 1, snapshot: { path: file } })
    await say('snap', 'a', path('asked-1-2.pickle'))
    await say('snap', 'b', '/etc/passwd')
    await say('snap', 'c', path('asked-9-9.pickle'))
    await say('snap', 'd', path('asked-404-1.pickle'))
    await say('far', 'e', path('asked-1-2.pickle'))
    const { body } = await client.ask('GET', '')
    const listed = (body.snapshots as { id: string; name: string; run: string; notOpened: string | null }[]).filter(
      ({ run }) => run !== null,
    )
    const found = (name: string, run = 'snap') => listed.find((one) => one.name === name && one.run === run) ?? { id: '', notOpened: '' }
    expect(listed.map(({ name }) => name).sort()).toEqual([
      'asked-1-2.pickle',
      'asked-1-2.pickle',
      'asked-404-1.pickle',
      'asked-9-9.pickle',
      'passwd',
    ])
    expect((await client.analyzed(found('asked-1-2.pickle').id)).state).toBe('ready')
    expect(await client.analyzed(found('asked-9-9.pickle').id)).toMatchObject({
      state: 'failed',
      reason: 'asked-9-9.pickle is no plain file',
    })
    expect(await client.analyzed(found('asked-404-1.pickle').id)).toMatchObject({
      state: 'failed',
      reason: 'asked-404-1.pickle is not there anymore',
    })
    expect(found('passwd').notOpened).toMatch(/none that the SDK gives/)
    expect(code(await client.ask('GET', `/${found('passwd').id}`))).toEqual([503, 'unavailable'])
    expect(found('asked-1-2.pickle', 'far').notOpened).toBe('it lies on another-host')
    expect(code(await client.ask('DELETE', `/${found('asked-1-2.pickle').id}`))).toEqual([403, 'not_permitted'])
    expect(existsSync(path('asked-1-2.pickle'))).toBe(true)
  })
})

describe('snapshots and the agent', () => {
  it('ask for the token on every route', async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--token', TOKEN])
    try {
      const [wrong, right] = [new Client(agent.url, 'wrong-token-here'), new Client(agent.url, TOKEN)]
      const id = await right.upload('a.pickle.gz', bytesOf('healthy'))
      for (const [method, path, body] of [
        ['GET', ''],
        ['GET', `/${id}`],
        ['GET', `/${id}/columns?from=0&to=1`],
        ['GET', `/${id}/moment?index=0`],
        ['GET', `/${id}/diff?before=${id}`],
        ['POST', '', { name: 'a', bytes: 1 }],
        ['PUT', `/${id}/content?offset=0`, new Uint8Array(3)],
        ['DELETE', `/${id}`],
      ] as const) {
        expect(code(await new Client(agent.url).ask(method, path, body))).toEqual([401, 'missing_token'])
        expect([401, 429]).toContain((await wrong.ask(method, path, body)).status)
      }
      expect((await right.analyzed(id)).state).toBe('ready')
    } finally {
      await agent.stop()
    }
  })

  it('a restart in the middle of an upload ends it, and the end of the agent removes everything', async () => {
    const temporary = temporaryFolder()
    const start = () => RunningAgent.start(['--source', 'demo'], { TMPDIR: temporary })
    const first = await start()
    const id = await new Client(first.url).begin('half.pickle', 1000)
    await new Client(first.url).ask('PUT', `/${id}/content?offset=0`, new Uint8Array(400))
    await first.stop('SIGTERM')
    expect(readdirSync(temporary).filter((name) => name.startsWith('gpuwarden-uploads-'))).toEqual([])
    const second = await start()
    try {
      const answer = await new Client(second.url).ask('PUT', `/${id}/content?offset=400`, new Uint8Array(600))
      expect(code(answer)).toEqual([404, 'unknown_snapshot'])
    } finally {
      await second.stop('SIGKILL')
    }
  })
})
