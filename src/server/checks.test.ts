import { describe, expect, it } from 'vitest'
import { encodingFor, fileEncodingFor, metricsFormat } from './accept.ts'
import { crossSiteReason, unprovenOriginReason } from './cross-site.ts'
import { createFailedTries } from './failed-tries.ts'
import { createGate } from './gate.ts'
import { createHostCheck, hostOf, isLoopback } from './host-check.ts'
import { traceOf } from './trace.ts'

describe('host check', () => {
  const local = createHostCheck({
    boundHost: '127.0.0.1',
    hostname: 'node7.lab.example',
    allowedHosts: ['gpu.example', '.cluster.example'],
  })

  it('answers to its own names', () => {
    const own = [
      'localhost',
      'LOCALHOST:4780',
      'localhost.',
      '127.0.0.1:80',
      '[::1]:4780',
      'node7',
      'node7.lab.example:1',
      'gpu.example',
      'a.b.cluster.example',
    ]
    for (const host of own) expect(local(host), host).toBe(true)
  })

  it('answers to nobody else', () => {
    const others = [
      undefined,
      '',
      'evil.com',
      'localhost.evil.com',
      'evil.com:4780',
      '10.0.0.5',
      '127.0.0.1.nip.io',
      '[::2]',
      'a@localhost',
      'localhost/x',
    ]
    for (const host of [...others, '.cluster.example', 'xcluster.example', 'node7.evil.com', 'localhost:4780:1'])
      expect(local(host), host).toBe(false)
  })

  it('takes any address, but not any name, when others may reach it', () => {
    const wide = createHostCheck({ boundHost: '0.0.0.0', hostname: 'node7', allowedHosts: [] })
    expect(wide('10.0.0.5:4780')).toBe(true)
    expect(wide('[fd00::7]:4780')).toBe(true)
    expect(wide('evil.com')).toBe(false)
  })

  it('knows loopback addresses', () => {
    for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1', '[::1]']) expect(isLoopback(host), host).toBe(true)
    for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.evil.com', '127.0.0.1.nip.io']) expect(isLoopback(host), host).toBe(false)
    expect(hostOf('[::1]:80')).toBe('::1')
  })
})

describe('cross-site check', () => {
  const host = 'localhost:4780'

  it('lets programs and the own page through', () => {
    expect(crossSiteReason('POST', { host })).toBeNull()
    expect(crossSiteReason('POST', { host, origin: 'http://localhost:4780' })).toBeNull()
    expect(crossSiteReason('POST', { host, origin: 'http://localhost:4780', 'sec-fetch-site': 'same-origin' })).toBeNull()
    expect(crossSiteReason('GET', { host, origin: 'http://evil.com' })).toBeNull()
    expect(crossSiteReason('GET', { host, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' })).toBeNull()
  })

  it('stops pages of others', () => {
    for (const origin of ['http://evil.com', 'null', '', 'http://localhost:3000', 'http://localhost:4780@evil.com', 'file://']) {
      expect(crossSiteReason('POST', { host, origin }), origin).not.toBeNull()
    }
    expect(crossSiteReason('DELETE', { host, 'sec-fetch-site': 'same-site' })).not.toBeNull()
    expect(crossSiteReason('GET', { host, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })).not.toBeNull()
  })
})

describe('cross-site check of what is let in by a cookie', () => {
  const host = 'localhost:4780'

  it('wants proof from who changes something, and none from who reads', () => {
    expect(unprovenOriginReason('GET', { host })).toBeNull()
    expect(unprovenOriginReason('HEAD', { host })).toBeNull()
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      expect(unprovenOriginReason(method, { host }), method).not.toBeNull()
      expect(unprovenOriginReason(method, { host, 'sec-fetch-site': 'none' }), method).not.toBeNull()
      expect(unprovenOriginReason(method, { host, origin: 'http://evil.com' }), method).not.toBeNull()
      expect(unprovenOriginReason(method, { host, origin: 'http://localhost:4780' }), method).toBeNull()
      expect(unprovenOriginReason(method, { host, 'sec-fetch-site': 'same-origin' }), method).toBeNull()
    }
  })
})

describe('failed tries', () => {
  it('cost a wait after ten, which passes', () => {
    let now = 1000
    const tries = createFailedTries({ now: () => now })
    for (let n = 0; n < 10; n++) {
      expect(tries.waitMs('10.0.0.1')).toBe(0)
      tries.count('10.0.0.1')
    }
    expect(tries.waitMs('::ffff:10.0.0.1')).toBe(6000)
    expect(tries.waitMs('10.0.0.2')).toBe(0)
    now += 6001
    expect(tries.waitMs('10.0.0.1')).toBe(0)
    tries.count('10.0.0.1')
    expect(tries.waitMs('10.0.0.1')).toBeGreaterThan(0)
    now += 60_001
    expect(tries.waitMs('10.0.0.1')).toBe(0)
  })

  it('remember a bounded number of addresses, and a /64 of IPv6 as one', () => {
    const tries = createFailedTries({ now: () => 0, burst: 1, maxAddresses: 3 })
    for (let n = 0; n < 100; n++) tries.count(`10.0.0.${n}`)
    expect(tries.size).toBe(3)
    expect(tries.waitMs('10.0.0.99')).toBeGreaterThan(0)
    expect(tries.waitMs('10.0.0.1')).toBe(0)
    tries.count('2001:db8::1')
    expect(tries.waitMs('2001:db8:0:0:ffff::2')).toBeGreaterThan(0)
    expect(tries.waitMs('2001:db8:0:1::1')).toBe(0)
  })
})

describe('gate', () => {
  it('takes the right token only, and as a bearer', () => {
    const gate = createGate('correct-horse', { monotonic: () => 0 })
    expect(gate.check('a', 'Bearer correct-horse')).toEqual({ ok: true })
    expect(gate.check('a', 'bearer  correct-horse')).toEqual({ ok: true })
    expect(gate.check('a', undefined)).toEqual({ ok: false, code: 'missing_token' })
    for (const wrong of [
      'Bearer correct-hors',
      'Bearer correct-horsee',
      'Bearer ',
      'Basic correct-horse',
      'correct-horse',
      'Bearer CORRECT-HORSE',
    ]) {
      expect(gate.check('a', wrong), wrong).toEqual({ ok: false, code: 'wrong_token' })
    }
  })

  it('slows down wrong tokens by address, and never the right one', () => {
    const gate = createGate('correct-horse', { monotonic: () => 0 })
    for (let n = 0; n < 10; n++) expect(gate.check('a', 'Bearer guess')).toMatchObject({ code: 'wrong_token' })
    expect(gate.check('a', 'Bearer guess')).toMatchObject({ code: 'too_many_attempts' })
    expect(gate.check('a', 'Bearer correct-horse')).toEqual({ ok: true })
    expect(gate.check('a', 'Bearer guess')).toMatchObject({ code: 'too_many_attempts' })
    expect(gate.check('b', 'Bearer guess')).toMatchObject({ code: 'wrong_token' })
  })
})

describe('trace', () => {
  const valid = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

  it('keeps a valid one', () => {
    expect(traceOf(valid)).toMatchObject({ traceId: '4bf92f3577b34da6a3ce929d0e0e4736', parentId: '00f067aa0ba902b7', flags: '01' })
    expect(traceOf('cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-later')).toMatchObject({
      parentId: '00f067aa0ba902b7',
      flags: '01',
    })
  })

  it('begins a new one for anything else', () => {
    const zeroTrace = `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`
    const zeroSpan = `00-4bf92f3577b34da6a3ce929d0e0e4736-${'0'.repeat(16)}-01`
    for (const wrong of [undefined, '', valid.toUpperCase(), `${valid}-x`, valid.replace('00-', 'ff-'), zeroTrace, zeroSpan, ` ${valid}`]) {
      const { traceId, parentId, flags } = traceOf(wrong)
      expect(traceId, wrong).not.toBe('4bf92f3577b34da6a3ce929d0e0e4736')
      expect(traceId).toMatch(/^[0-9a-f]{32}$/)
      expect([parentId, flags]).toEqual([null, '00'])
    }
  })
})

describe('negotiation', () => {
  it('chooses the metrics format', () => {
    expect(metricsFormat(undefined)).toBe('text')
    expect(metricsFormat('*/*')).toBe('text')
    expect(metricsFormat('text/plain;version=0.0.4')).toBe('text')
    expect(metricsFormat('application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1')).toBe('openmetrics')
    expect(metricsFormat('text/plain;q=0.5, Application/OpenMetrics-Text;version=0.0.1;q=0.75')).toBe('openmetrics')
    expect(metricsFormat('application/openmetrics-text; version=1.0.0')).toBe('openmetrics')
    expect(metricsFormat('text/plain;q=0.9,application/openmetrics-text;q=0.5')).toBe('text')
    expect(metricsFormat('application/openmetrics-text;q=0')).toBe('text')
    expect(metricsFormat('application/openmetrics-text;q=junk')).toBe('text')
  })

  it('chooses the encoding', () => {
    expect(encodingFor('gzip, deflate, br')).toBe('gzip')
    expect(encodingFor('gzip;q=0.5, deflate')).toBe('deflate')
    expect(encodingFor('*')).toBe('gzip')
    expect(encodingFor('br')).toBeNull()
    expect(encodingFor('gzip;q=0')).toBeNull()
    expect(encodingFor(undefined)).toBeNull()
  })

  it('chooses the encoding of files', () => {
    expect(fileEncodingFor('gzip, deflate, br')).toBe('br')
    expect(fileEncodingFor('br;q=0.5, gzip')).toBe('gzip')
    expect(fileEncodingFor('gzip')).toBe('gzip')
    expect(fileEncodingFor('*')).toBe('br')
    expect(fileEncodingFor('br;q=0, gzip;q=0, *;q=0')).toBeNull()
    expect(fileEncodingFor('deflate')).toBeNull()
    expect(fileEncodingFor(undefined)).toBeNull()
  })
})
