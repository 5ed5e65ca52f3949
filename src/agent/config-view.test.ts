import { describe, expect, it } from 'vitest'
import { KEYS, loadConfig } from './config.ts'
import { configView } from './config-view.ts'

const env = {
  XDG_CONFIG_HOME: '/nonexistent',
  GPUWARDEN_SERVER_TOKEN: 'correct-horse-battery',
  GPUWARDEN_PUSH_REMOTE_WRITE_URL: 'https://writer:hunter2@metrics.example/push?tenant=a@b',
  GPUWARDEN_SERVER_PROT: '1',
}

describe('the configuration as it is shown', () => {
  const view = configView(loadConfig({ env, flags: { interval: '2' } }))
  const row = (key: string) => view.settings.find((one) => one.key === key)

  it('has every setting with its origin, its variable and its help', () => {
    expect(view.settings.map(({ key }) => key)).toEqual(KEYS)
    expect(row('interval')).toMatchObject({ value: 2, from: 'flag --interval', variable: 'GPUWARDEN_INTERVAL' })
    expect(row('server.allow_kill')).toMatchObject({ value: false, from: 'default', help: expect.stringContaining('token') })
    expect(view.file).toBeNull()
    expect(view.warnings).toEqual([expect.stringContaining('GPUWARDEN_SERVER_PROT')])
  })

  it('has no secrets', () => {
    expect(row('server.token')?.value).toBe('********')
    expect(row('push.remote_write.url')?.value).toBe('https://********@metrics.example/push?tenant=a@b')
    expect(JSON.stringify(view)).not.toMatch(/correct-horse|hunter2|writer/)
  })
})
