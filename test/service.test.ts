/** gpuwarden as a service: the unit, where it is put, its signs of life, and the files for containers. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { quoted, type Scope, unitText } from '../src/service/unit.ts'
import { startWatchdog, watchdogMs } from '../src/service/watchdog.ts'
import { VENDORS } from '../src/sources/vendors.ts'
import { pretendSystemd } from './pretend-systemd.ts'
import { run, temporaryFolder, until } from './program.ts'

const DEPLOY = fileURLToPath(new URL('../deploy/', import.meta.url))
const PLACES = {
  command: ['/usr/bin/node', '/usr/lib/node_modules/gpuwarden/bin/gpuwarden.js'],
  runAs: null,
  config: null,
  drivers: VENDORS.map(({ unit }) => unit),
}
const has = (program: string) => spawnSync(program, ['--version']).error === undefined

describe('the unit', () => {
  it('is the one in deploy/systemd (UPDATE_GOLDEN=1 writes it anew)', () => {
    for (const scope of ['system', 'user'] as const satisfies readonly Scope[]) {
      const file = join(DEPLOY, 'systemd', `gpuwarden.${scope}.service`)
      const text = unitText({ scope, ...PLACES })
      if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, text)
      expect(readFileSync(file, 'utf8')).toBe(text)
    }
  })

  it('keeps paths with odd characters in one piece', () => {
    expect(quoted('/opt/my gpus/100%/bin')).toBe('"/opt/my gpus/100%%/bin"')
    expect(quoted('/opt/$x')).toBe('/opt/$$x')
    const text = unitText({
      ...PLACES,
      scope: 'system',
      command: ['/home/ada/.nvm/node', '/opt/gpuwarden.js'],
      runAs: 'ada',
      config: '/etc/a b.yaml',
    })
    expect(text).toContain('--config "/etc/a b.yaml"')
    expect(text).toMatch(/^User=ada$/m)
    expect(text).toMatch(/^ProtectHome=read-only$/m)
    expect(text).not.toContain('DynamicUser')
  })
})

/** A systemctl that writes down what it is asked, and says yes. */
function pretendSystemctl(): { path: string; calls: () => string[] } {
  const folder = temporaryFolder()
  const file = join(folder, 'calls')
  writeFileSync(
    join(folder, 'systemctl'),
    `#!/bin/sh\necho "$*" >> ${file}\ncase "$*" in *is-active*) echo active;; *is-enabled*) echo enabled;; esac\n`,
  )
  chmodSync(join(folder, 'systemctl'), 0o755)
  return { path: `${folder}:${process.env.PATH}`, calls: () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []) }
}

describe('gpuwarden service', () => {
  it('installs, shows and removes a service of a user', async () => {
    const { path, calls } = pretendSystemctl()
    const home = temporaryFolder()
    const env = { PATH: path, HOME: home, XDG_CONFIG_HOME: join(home, 'config') }
    const file = join(home, 'config/systemd/user/gpuwarden.service')
    expect((await run(['service', 'status', '--user'], env)).code).toBe(1)
    const installed = await run(['service', 'install', '--user'], env)
    expect(installed).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(file, 'utf8')).toContain(`${process.execPath} `)
    expect(calls()).toEqual(expect.arrayContaining(['--user daemon-reload', '--user enable --now gpuwarden.service']))
    const status = await run(['service', 'status', '--user'], env)
    expect(status.code).toBe(0)
    expect(status.stdout).toMatch(/enabled: enabled\nactive: active/)
    expect((await run(['service', 'uninstall', '--user'], env)).code).toBe(0)
    expect(existsSync(file)).toBe(false)
    expect(calls().at(-1)).toBe('--user daemon-reload')
    expect((await run(['service', 'uninstall', '--user'], env)).stdout).toContain('not installed')
  })

  it('writes into an image without talking to systemd', async () => {
    const { path, calls } = pretendSystemctl()
    const root = temporaryFolder()
    expect((await run(['service', 'install', '--system', '--root', root], { PATH: path })).code).toBe(0)
    expect(readFileSync(join(root, 'etc/systemd/system/gpuwarden.service'), 'utf8')).toContain('DynamicUser=yes')
    expect(calls()).toEqual([])
  })

  it('says what went wrong', async () => {
    const noSystemd = await run(['service', 'install', '--user'], {
      PATH: '/nonexistent',
      HOME: temporaryFolder(),
      XDG_CONFIG_HOME: temporaryFolder(),
    })
    expect(noSystemd.code).toBe(3)
    expect(noSystemd.stderr).toContain('does not use systemd')
    expect((await run(['service', 'explode'])).code).toBe(2)
    expect((await run(['service', 'install', '--user', '--run-as', 'ada'])).code).toBe(2)
  })
})

describe('signs of life', () => {
  it('are given only where systemd waits for them', () => {
    const env = { NOTIFY_SOCKET: '/run/x', WATCHDOG_USEC: '90000000', WATCHDOG_PID: '7' }
    expect(watchdogMs({ env, pid: 7 })).toBe(90_000)
    expect(watchdogMs({ env, pid: 8 })).toBe(null)
    expect(watchdogMs({ env: { ...env, NOTIFY_SOCKET: undefined }, pid: 7 })).toBe(null)
    expect(watchdogMs({ env: {}, pid: 7 })).toBe(null)
  })

  const missing = ['systemd-notify', 'python3'].filter((program) => !has(program))
  const reason = missing.length > 0 ? ` (skipped: ${missing.join(', ')} not on the PATH)` : ''

  it.skipIf(missing.length > 0)(`reach systemd again and again${reason}`, async () => {
    const systemd = await pretendSystemd()
    const faults: string[] = []
    const env = { PATH: process.env.PATH, NOTIFY_SOCKET: systemd.socket, WATCHDOG_USEC: '300000' }
    const stop = startWatchdog({ env, pid: process.pid, onFailure: (why) => faults.push(why) })
    await until('three signs came', () => systemd.said().split('WATCHDOG=1').length > 3)
    stop()
    systemd.stop()
    expect(faults).toEqual([])
  })

  it.skipIf(missing.length > 0)(`are given by gpuwarden service run${reason}`, async () => {
    const systemd = await pretendSystemd()
    const bin = fileURLToPath(new URL('../bin/gpuwarden.js', import.meta.url))
    const env = {
      PATH: process.env.PATH,
      HOME: temporaryFolder(),
      XDG_CONFIG_HOME: '/nonexistent',
      GPUWARDEN_SOURCE: 'demo',
      GPUWARDEN_SERVER_PORT: '0',
      NOTIFY_SOCKET: systemd.socket,
      WATCHDOG_USEC: '900000',
    }
    const child = spawn(process.execPath, [bin, 'service', 'run', '--log-dir', temporaryFolder()], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let log = ''
    child.stderr.on('data', (data) => {
      log += data
    })
    await until('the agent watches and gives signs', () => log.includes('gpuwarden is watching') && systemd.said().includes('WATCHDOG=1'))
    const ended = new Promise((resolve) => child.once('close', resolve))
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
    systemd.stop()
  })

  it('that cannot be given are said once, and hurt nobody', async () => {
    const faults: string[] = []
    const env = { PATH: '/nonexistent', NOTIFY_SOCKET: '/nonexistent', WATCHDOG_USEC: '30000' }
    const stop = startWatchdog({ env, pid: process.pid, onFailure: (why) => faults.push(why) })
    await until('it was said', () => faults.length > 0)
    await new Promise((resolve) => setTimeout(resolve, 60))
    stop()
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain('systemd-notify')
  })
})
