import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, outcome } from './ask.fixture.ts'
import { openAssetFolder } from './asset-folder.ts'
import { type Running, startServer } from './pretend-agent.contract.ts'

const PAGE = '<!doctype html><title>dash</title>\n'
const SCRIPT = Buffer.from(`const text = 'größer'\n${'console.log(text)\n'.repeat(500)}`)
const PICTURE = Buffer.from(Array.from({ length: 3000 }, (_, n) => (n * 7919) % 256))
/** Larger than what is worth it, and not to be made smaller. */
const NOISE = randomBytes(1200)

let folder: string
let running: Running
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gpuwarden-web-'))
  await mkdir(join(folder, 'assets', 'deep'), { recursive: true })
  const files: Record<string, string | Buffer> = {
    'index.html': PAGE,
    'sw.js': 'self.skipWaiting()\n',
    'manifest.webmanifest': '{"name":"gpuwarden"}',
    'unknown.xyz': '?',
    'empty.txt': '',
    'assets/index-B3xK9_qa.js': SCRIPT,
    'assets/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
    'assets/deep/picture-a1b2c3d4.png': PICTURE,
    'assets/noise-a1b2c3d4.js': NOISE,
  }
  for (const [name, body] of Object.entries(files)) await writeFile(join(folder, name), body)
  await symlink('/etc/passwd', join(folder, 'link.txt'))
  running = await startServer({ assets: openAssetFolder(folder) ?? (() => null) }, { 'server.token': 'a-token-nobody-guesses' })
})
afterAll(async () => {
  await running.server.close()
  await rm(folder, { recursive: true })
})

const get = (path: string, headers: Record<string, string> = {}) => ask(running.port, path, { headers })

describe('files of the web UI', () => {
  it('are served byte by byte, without a token, with their type and how long they keep', async () => {
    const forEver = 'public, max-age=31536000, immutable'
    const expected: Record<string, readonly [string, string, string | Buffer]> = {
      '/': ['text/html; charset=utf-8', 'no-cache', PAGE],
      '/index.html': ['text/html; charset=utf-8', 'no-cache', PAGE],
      '/sw.js': ['text/javascript; charset=utf-8', 'no-cache', 'self.skipWaiting()\n'],
      '/manifest.webmanifest': ['application/manifest+json; charset=utf-8', 'no-cache', '{"name":"gpuwarden"}'],
      '/unknown.xyz?v=1': ['application/octet-stream', 'no-cache', '?'],
      '/empty.txt': ['text/plain; charset=utf-8', 'no-cache', ''],
      '/assets/index-B3xK9_qa.js': ['text/javascript; charset=utf-8', forEver, SCRIPT],
      '/assets/logo.svg': ['image/svg+xml', 'no-cache', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
      '/assets/deep/picture-a1b2c3d4.png': ['image/png', forEver, PICTURE],
    }
    for (const [path, [type, cache, body]] of Object.entries(expected)) {
      const { status, headers, bytes } = await get(path)
      expect([status, headers['content-type'], headers['cache-control']], path).toEqual([200, type, cache])
      expect(bytes.equals(Buffer.from(body)), path).toBe(true)
      expect(headers['content-encoding'], path).toBeUndefined()
      expect(headers['content-length'], path).toBe(String(bytes.length))
    }
  })

  it('keep scripts, styles and workers to this server, and nothing inline', async () => {
    const policy = String((await get('/')).headers['content-security-policy'])
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "worker-src 'self'", "frame-ancestors 'none'"])
      expect(policy.split('; ')).toContain(part)
    expect(policy).not.toContain('unsafe')
  })

  it('come compressed to who takes it, once, and only where that helps', async () => {
    const path = '/assets/index-B3xK9_qa.js'
    const brotli = await get(path, { 'accept-encoding': 'gzip, deflate, br' })
    expect(brotli.headers['content-encoding']).toBe('br')
    expect(brotli.headers['content-length']).toBe(String(brotli.bytes.length))
    expect(brotliDecompressSync(brotli.bytes).equals(SCRIPT)).toBe(true)
    const zipped = await get(path, { 'accept-encoding': 'gzip' })
    expect([zipped.headers['content-encoding'], zipped.headers.vary]).toEqual(['gzip', 'Accept-Encoding'])
    expect(gunzipSync(zipped.bytes).equals(SCRIPT)).toBe(true)
    for (const [other, encoding] of [
      [path, 'deflate'],
      [path, 'br;q=0'],
      ['/', 'br'],
      ['/assets/deep/picture-a1b2c3d4.png', 'br, gzip'],
      ['/assets/noise-a1b2c3d4.js', 'br, gzip'],
    ] as const)
      expect((await get(other, { 'accept-encoding': encoding })).headers['content-encoding'], `${other} ${encoding}`).toBeUndefined()
  })

  it('compress a file once, however many ask at once', async () => {
    const script = openAssetFolder(folder)?.('/assets/index-B3xK9_qa.js')
    const [first, second] = await Promise.all([script?.encoded?.('br'), script?.encoded?.('br')])
    expect(first).toBeInstanceOf(Uint8Array)
    expect(second).toBe(first)
  })

  it('are not sent again to who has them', async () => {
    const path = '/assets/index-B3xK9_qa.js'
    const tags = new Set<string>()
    for (const encoding of ['identity', 'gzip', 'br']) {
      const accept = { 'accept-encoding': encoding }
      const etag = String((await get(path, accept)).headers.etag)
      expect(etag).toMatch(/^"[\w-]+"$/)
      tags.add(etag)
      for (const given of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const { status, headers, bytes } = await get(path, { ...accept, 'if-none-match': given })
        expect([status, bytes.length, headers.etag], given).toEqual([304, 0, etag])
        expect([headers['content-length'], headers['content-encoding']]).toEqual([undefined, undefined])
      }
      expect((await get(path, { ...accept, 'if-none-match': '"other"' })).status).toBe(200)
    }
    // Other bytes, other tag.
    expect(tags.size).toBe(3)
    const page = await get('/')
    expect((await get('/', { 'if-none-match': String(page.headers.etag) })).status).toBe(304)
  })

  it('answer HEAD without the body', async () => {
    const { status, headers, bytes } = await ask(running.port, '/sw.js', { method: 'HEAD' })
    expect([status, headers['content-length'], bytes.length]).toEqual([200, '19', 0])
  })
})

describe('what is no file of the web UI', () => {
  it('is out of reach, whatever the path says', async () => {
    for (const path of [
      '/assets/../../etc/passwd',
      '/assets/..%2f..%2f..%2fetc/passwd',
      '/assets/%2e%2e/%2e%2e/etc/passwd',
      '/assets/..%5c..%5cetc%5cpasswd',
      '/assets/%00index-B3xK9_qa.js',
      '//etc/passwd',
      '/./index.html',
      '/assets',
      '/assets/',
      '/link.txt',
      '/__proto__',
      '/constructor',
      '/INDEX.HTML',
      '/index.html/',
      `/${'a/'.repeat(2000)}`,
    ]) {
      const answer = await get(path)
      expect(outcome(answer), path.slice(0, 60)).toBe('401 missing_token')
    }
    const known = { authorization: 'Bearer a-token-nobody-guesses' }
    expect(outcome(await get('/assets/../../etc/passwd', known))).toBe('404 not_found')
    expect(outcome(await ask(running.port, '/sw.js', { method: 'POST' }))).toBe('401 missing_token')
    expect(outcome(await get('/api/v1/gpus'))).toBe('401 missing_token')
    expect(outcome(await ask(running.port, '/', { headers: { host: 'evil.com' } }))).toBe('403 forbidden_host')
  })

  it('is nothing at all where there is no page', () => {
    expect(openAssetFolder(join(folder, 'nowhere'))).toBeNull()
    expect(openAssetFolder(join(folder, 'assets'))).toBeNull()
  })
})
