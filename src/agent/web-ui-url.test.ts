import { describe, expect, it } from 'vitest'
import { linksFor } from '../alerts/composer.ts'
import { safeLink } from '../channels/plain-text.ts'
import { type WebUiPlace, webUiUrl } from './web-ui-url.ts'

const place = (parts: Partial<WebUiPlace> = {}): WebUiPlace => ({
  ...{ 'alerts.dashboard_url': null, 'server.enabled': true, 'server.host': '127.0.0.1', 'server.port': 4780 },
  ...parts,
})

describe('the address of the web UI', () => {
  it.each([
    [{}, 'http://127.0.0.1:4780'],
    [{ 'server.host': 'localhost' }, 'http://localhost:4780'],
    [{ 'server.host': '::1' }, 'http://[::1]:4780'],
    [{ 'server.host': '0.0.0.0' }, 'http://node7:4780'],
    [{ 'server.host': '::', 'server.port': 80 }, 'http://node7:80'],
    [{ 'server.host': '10.0.0.7' }, 'http://10.0.0.7:4780'],
    [{ 'server.host': 'node7.example.org' }, 'http://node7.example.org:4780'],
    [{ 'server.port': 0 }, null],
    [{ 'server.enabled': false }, null],
    [{ 'alerts.dashboard_url': 'https://gpu.example.org/' }, 'https://gpu.example.org'],
    [{ 'alerts.dashboard_url': 'https://gpu.example.org/box/7/', 'server.enabled': false }, 'https://gpu.example.org/box/7'],
    [{ 'alerts.dashboard_url': 'https://ada:secret@gpu.example.org:8443/?token=secret#/overview' }, 'https://gpu.example.org:8443'],
  ] as [Partial<WebUiPlace>, string | null][])('%j is %s', (parts, url) => {
    expect(webUiUrl(place(parts), 'node7')).toBe(url)
  })

  it('is what links begin with; whatever is in a fingerprint comes out of them again', () => {
    const fingerprint = `intruder|gpu=GPU-0|user=o'Brien & "söhne" (x)[y]#?/%`
    const { dashboard, silence } = linksFor(webUiUrl(place(), 'node7'), fingerprint)
    expect(dashboard).toBe('http://127.0.0.1:4780/#/alerts')
    for (const link of [silence, safeLink(silence)]) {
      const { origin, hash } = new URL(link ?? '')
      expect(origin).toBe('http://127.0.0.1:4780')
      expect(new URLSearchParams(hash.replace(/^#\/silence\?/, '')).get('fingerprint')).toBe(fingerprint)
    }
    expect(safeLink(silence)).not.toMatch(/['"()[\]|<>]/)
  })
})
