import { describe, expect, it } from 'vitest'
import { isPrivateHost, leadsInside } from './public-host.ts'

describe('hosts', () => {
  it.each([
    ...['localhost', 'LOCALHOST', 'a.localhost', 'printer.local', 'router', 'metadata.google.internal', 'box.lan', 'localhost.'],
    ...['127.0.0.1', '127.8.8.8', '0.0.0.0', '10.1.2.3', '100.64.0.1', '169.254.169.254', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ...['224.0.0.1', '255.255.255.255', '198.18.0.1'],
    ...['[::1]', '::1', '[::]', '[fe80::1]', '[fd00::1]', '[ff02::1]', '[::ffff:10.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::a00:1]'],
  ])('%s is inside', (host) => {
    expect(isPrivateHost(host)).toBe(true)
  })

  it.each([
    ...[
      'fcm.googleapis.com',
      'updates.push.services.mozilla.com',
      'web.push.apple.com',
      'wns2-by3p.notify.windows.com',
      'localhost.example.org',
    ],
    ...['8.8.8.8', '172.32.0.1', '100.128.0.1', '192.169.0.1', '[2606:4700::1111]', '[::ffff:8.8.8.8]'],
  ])('%s is not', (host) => {
    expect(isPrivateHost(host)).toBe(false)
  })

  it('are judged by where they lead as well', async () => {
    expect(await leadsInside('localhost')).toBe(true)
    expect(await leadsInside('[::ffff:127.0.0.1]')).toBe(true)
    expect(await leadsInside('8.8.8.8')).toBe(false)
    await expect(leadsInside('nothing.invalid')).rejects.toThrow()
  })
})
