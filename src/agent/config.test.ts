import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EXIT, Failure } from '../core/failure.ts'
import type { Setting } from '../core/setting.ts'
import { describeOrigin, KEYS, loadConfig, SETTINGS, variableOf } from './config.ts'

const NOWHERE = { XDG_CONFIG_HOME: '/nonexistent' }

function file(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'gpuwarden-config-')), 'gpuwarden.yaml')
  writeFileSync(path, text)
  return path
}

function failure(run: () => unknown): Failure {
  try {
    run()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error('expected a Failure, but nothing was thrown')
}

describe('loadConfig', () => {
  it('gives flags precedence over the environment, that over the file, that over defaults', () => {
    const path = file('interval: 7\nlog:\n  dir: /from-file\n  keep_days: 3\n')
    const env = { ...NOWHERE, GPUWARDEN_INTERVAL: '5', GPUWARDEN_LOG_DIR: '/from-env' }
    const { values, origins } = loadConfig({ flags: { interval: '2' }, env, file: path })
    expect(values.interval).toBe(2)
    expect(origins.interval).toEqual({ from: 'flag', name: '--interval' })
    expect(values['log.dir']).toBe('/from-env')
    expect(origins['log.dir']).toEqual({ from: 'environment', name: 'GPUWARDEN_LOG_DIR' })
    expect(values['log.keep_days']).toBe(3)
    expect(origins['log.keep_days']).toEqual({ from: 'file', name: path })
    expect(values['server.port']).toBe(4780)
    expect(origins['server.port'].from).toBe('default')
  })

  it('has defaults that satisfy their own schemas, and help for each', () => {
    for (const key of KEYS) {
      const setting: Setting = SETTINGS[key]
      expect(setting.schema.safeParse(setting.default).success, key).toBe(true)
      expect(setting.help.length, key).toBeGreaterThan(10)
    }
  })

  it('gives every key a variable of its own', () => {
    expect(new Set(KEYS.map(variableOf)).size).toBe(KEYS.length)
  })

  describe("the seeds' variables", () => {
    it('work as written', () => {
      const env = {
        ...NOWHERE,
        MONITORING_INTERVAL: '30',
        THRESHOLD: '0.9',
        SMTP_SERVER: 'mail.example.org',
        SMTP_PORT: '587',
        EMAIL_ADDRESS: 'gpu@example.org',
        EMAIL_PASSWORD: 'hunter2',
        TO_EMAILS: 'a@example.org, b@example.org',
      }
      const { values } = loadConfig({ env })
      expect(values.interval).toBe(30)
      expect(values['anomaly.threshold']).toBe(0.9)
      expect(values['email.server']).toBe('mail.example.org')
      expect(values['email.port']).toBe(587)
      expect(values['email.password']).toBe('hunter2')
      expect(values['email.to']).toEqual(['a@example.org', 'b@example.org'])
    })

    it('alone mean a look every 60 seconds, as the first seed did', () => {
      expect(loadConfig({ env: { ...NOWHERE, THRESHOLD: '0.5' } }).values.interval).toBe(60)
      expect(loadConfig({ env: { ...NOWHERE, THRESHOLD: '0.5', GPUWARDEN_LOG_DIR: '/x' } }).values.interval).toBe(1)
      expect(loadConfig({ env: { ...NOWHERE, THRESHOLD: '0.5' }, flags: { source: 'demo' } }).values.interval).toBe(1)
      expect(loadConfig({ env: NOWHERE }).values.interval).toBe(1)
    })

    it('are not confused with those of other tools', () => {
      expect(loadConfig({ env: { ...NOWHERE, MLFLOW_TRACKING_TOKEN: 'x' } }).values.interval).toBe(1)
      const { values, origins } = loadConfig({ env: { ...NOWHERE, MLFLOW_TRACKING_TOKEN: 'x', SMTP_SERVER: 'mail' } })
      expect(values.interval).toBe(60)
      expect(describeOrigin(origins.interval)).toMatch(/^default if only MONITORING_INTERVAL/)
    })

    it('are overruled by ours', () => {
      expect(loadConfig({ env: { ...NOWHERE, MONITORING_INTERVAL: '30', GPUWARDEN_INTERVAL: '3' } }).values.interval).toBe(3)
    })

    it('count as not set when they are empty', () => {
      expect(loadConfig({ env: { ...NOWHERE, SMTP_PORT: '', MONITORING_INTERVAL: '' } }).values.interval).toBe(1)
    })
  })

  it.each([
    [{ GPUWARDEN_INTERVAL: 'often' }, /^interval \(from environment GPUWARDEN_INTERVAL\): expected number; got "often"$/],
    [{ GPUWARDEN_DEVICES: '0,x' }, /^devices .*: expected number; got "0,x"$/],
    [{ GPUWARDEN_REPLAY_SPEED: '0' }, /^replay\.speed .*: expected a number above 0, or max; got "0"$/],
    [{ GPUWARDEN_INTERVAL: '0.01' }, /^interval .*0\.1/],
    [{ GPUWARDEN_SERVER_PORT: '70000' }, /^server\.port /],
    [{ GPUWARDEN_SOURCE: 'matrox' }, /^source .*nvidia, amd/],
    [{ SMTP_PORT: 'abc' }, /^email\.port \(from environment SMTP_PORT\)/],
    [{ TO_EMAILS: 'not-an-address' }, /^email\.to .*TO_EMAILS/],
  ])('names the key and where it came from: %o', (env, message) => {
    const error = failure(() => loadConfig({ env: { ...NOWHERE, ...env } }))
    expect(error.message).toMatch(message)
    expect(error.exitCode).toBe(2)
    expect(error.hint).toMatch(/Default/)
  })

  it('takes a list with spaces or with commas from a flag', () => {
    expect(loadConfig({ env: NOWHERE, flags: { devices: ['0', '1'] } }).values.devices).toEqual([0, 1])
    expect(loadConfig({ env: NOWHERE, flags: { devices: ['0,1', '3'] } }).values.devices).toEqual([0, 1, 3])
    expect(failure(() => loadConfig({ env: NOWHERE, flags: { devices: ['0,x'] } })).message).toMatch(
      /^devices \(from flag --devices\): expected number; got/,
    )
  })

  it('never shows a secret in an error', () => {
    const error = failure(() => loadConfig({ env: { ...NOWHERE, GPUWARDEN_SERVER_TOKEN: 'short' } }))
    expect(error.message).toMatch(/^server\.token/)
    expect(`${error.message}${error.hint}`).not.toContain('short')
  })

  it('stops on a missing, broken or misspelt file, naming it and the key', () => {
    expect(failure(() => loadConfig({ env: NOWHERE, file: '/nonexistent/x.yaml' })).message).toContain('/nonexistent/x.yaml')
    expect(failure(() => loadConfig({ env: NOWHERE, file: file('interval: [1\n') })).message).toMatch(/not valid YAML/)
    expect(failure(() => loadConfig({ env: NOWHERE, file: file('- 1\n- 2\n') })).message).toMatch(/keys and values/)
    expect(failure(() => loadConfig({ env: NOWHERE, file: file('log:\n  dirr: /x\n') })).message).toMatch(
      /unknown key "log\.dirr"; did you mean "log\.dir"/,
    )
    expect(failure(() => loadConfig({ env: NOWHERE, file: file('interval: "2"\n') })).message).toMatch(/^interval \(from file/)
  })

  it('takes a YAML bomb for a fault of the configuration', () => {
    const levels = Array.from(
      { length: 9 },
      (_, level) =>
        `l${level}: &l${level} [${Array(9)
          .fill(level === 0 ? '"x"' : `*l${level - 1}`)
          .join(', ')}]`,
    )
    const path = file(`${levels.join('\n')}\n`)
    expect(() => loadConfig({ file: path, env: {} })).toThrow(expect.objectContaining({ exitCode: EXIT.usage }))
    expect(() => loadConfig({ file: path, env: {} })).toThrow(/aliases too often/)
  })

  it('refuses a pipe or a device in place of the file, at once', () => {
    const pipe = join(mkdtempSync(join(tmpdir(), 'gpuwarden-config-')), 'gpuwarden.yaml')
    execFileSync('mkfifo', [pipe])
    expect(() => loadConfig({ file: pipe, env: {} })).toThrow(/is a pipe, not a file/)
    expect(() => loadConfig({ file: '/dev/zero', env: {} })).toThrow(/is a device, not a file/)
    expect(loadConfig({ file: '/dev/null', env: {} }).warnings).toEqual([])
  })

  it('warns of secrets in a file that every user may read', () => {
    const channel = 'channels: {hook: {type: webhook, url: "https://example.org/in", secret: s3cret}}'
    for (const text of ['server: {token: 0123456789abcdef0123}', 'email: {password: hidden}', channel]) {
      const path = file(text)
      chmodSync(path, 0o644)
      const [warning] = loadConfig({ file: path, env: {} }).warnings
      expect(warning).toMatch(
        /holds secrets \((server\.token|email\.password|channels)\) and every user of this machine may read it: run chmod o-r/,
      )
      expect(warning).not.toMatch(/0123456789|hidden|s3cret/)
      chmodSync(path, 0o640)
      expect(loadConfig({ file: path, env: {} }).warnings).toEqual([])
    }
    for (const text of ['interval: 2', 'channels: {hook: {type: webhook, url: "env:HOOK"}}']) {
      const path = file(text)
      chmodSync(path, 0o644)
      expect(loadConfig({ file: path, env: {} }).warnings).toEqual([])
    }
  })

  it('reads an empty file as no settings', () => {
    expect(loadConfig({ env: NOWHERE, file: file('# nothing yet\n') }).values.interval).toBe(1)
  })

  it('warns of a variable that is probably misspelt', () => {
    expect(loadConfig({ env: { ...NOWHERE, GPUWARDEN_LOGDIR: '/x' } }).warnings).toEqual([
      'unknown variable GPUWARDEN_LOGDIR is ignored; did you mean "GPUWARDEN_LOG_DIR"?',
    ])
    expect(loadConfig({ env: { ...NOWHERE, GPUWARDEN_RUN_ID: 'x' } }).warnings).toEqual([])
  })

  it('takes lists, numbers, yes and no from text', () => {
    const { values } = loadConfig({ env: { ...NOWHERE, GPUWARDEN_WAKE: 'yes', GPUWARDEN_DEVICES: '0,2', GPUWARDEN_REPLAY_SPEED: 'max' } })
    expect(values.wake).toBe(true)
    expect(values.devices).toEqual([0, 2])
    expect(values['replay.speed']).toBe('max')
    expect(loadConfig({ env: NOWHERE, flags: { devices: ['0', '1'] } }).values.devices).toEqual([0, 1])
  })

  it('fails with a named key or succeeds, whatever the text', () => {
    fc.assert(
      fc.property(fc.constantFrom(...KEYS), fc.string(), (key, text) => {
        try {
          loadConfig({ env: { ...NOWHERE, [variableOf(key)]: text } })
        } catch (error) {
          expect(error).toBeInstanceOf(Failure)
          expect((error as Failure).message.startsWith(`${key} (`)).toBe(true)
        }
      }),
    )
  })
})
