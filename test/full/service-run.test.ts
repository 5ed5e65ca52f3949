/** The unit's own command, run as systemd would run it: shut in, with a socket for signs of life; and by systemd itself where it is there. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type Scope, unitText } from '../../src/service/unit.ts'
import { type PretendSystemd, pretendSystemd } from '../pretend-systemd.ts'
import { BIN, temporaryFolder, until } from '../program.ts'
import { freePort } from './servers.ts'

const NODE = process.execPath
const NOBODY = '65534'
const PLACES = {
  command: [NODE, fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url))],
  runAs: null,
  config: null,
  drivers: [],
}
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const WATCHDOG_MS = 900

/** The words of ExecStart, with the folder that systemd puts in for %S. */
function execStart(scope: Scope, states: string): string[] {
  const line = /^ExecStart=(.+)$/m.exec(unitText({ scope, ...PLACES }))?.[1] ?? ''
  return line.replaceAll('%S', states).replaceAll('%%', '%').split(' ')
}

const asNobody = [
  'setpriv',
  '--reuid',
  NOBODY,
  '--regid',
  NOBODY,
  '--clear-groups',
  '--no-new-privs',
  '--inh-caps=-all',
  '--bounding-set=-all',
]

/** '' when this machine lets us make a mount namespace and become nobody, else the words for the title. */
function whyNotShutIn(): string {
  for (const program of ['unshare', 'setpriv', 'systemd-notify', 'python3'])
    if (spawnSync('which', [program]).status !== 0) return ` (skipped: ${program} is not on the PATH)`
  if (process.getuid?.() !== 0) return ' (skipped: a mount namespace needs root)'
  const probe = spawnSync('unshare', ['--mount', 'sh', '-c', 'mount --make-rprivate / && mount -o remount,bind,ro /'], { encoding: 'utf8' })
  if (probe.status !== 0) return ` (skipped: no mount namespace can be made here: ${probe.stderr.trim()})`
  const reads = spawnSync(asNobody[0] ?? '', [...asNobody.slice(1), NODE, BIN, '--version'], { encoding: 'utf8' })
  return reads.status === 0 ? '' : ` (skipped: another user cannot read the program here: ${reads.stderr.trim().slice(0, 200)})`
}

/** ProtectSystem=strict, StateDirectory=, PrivateTmp=, DynamicUser= and no capabilities, by hand. */
async function shutIn(
  systemd: PretendSystemd,
  states: string,
  socketFolder: string,
): Promise<{ child: ChildProcess; log: () => string; port: number }> {
  const port = await freePort()
  const state = join(states, 'gpuwarden')
  mkdirSync(state)
  spawnSync('chown', ['-R', `${NOBODY}:${NOBODY}`, state])
  chmodSync(state, 0o750)
  const tied = [states, socketFolder, ...(ROOT.startsWith('/tmp/') ? [ROOT] : [])]
  // Our temporary folders lie in /tmp, and so may the program: they are tied elsewhere before a new /tmp hides them, and back afterwards.
  const prepare = [
    'set -e',
    'mount --make-rprivate /',
    'mount -t tmpfs tmpfs /mnt',
    ...tied.flatMap((folder, index) => [`mkdir /mnt/${index}`, `mount --bind '${folder}' /mnt/${index}`]),
    'mount -t tmpfs -o mode=1777 tmpfs /tmp',
    ...tied.flatMap((folder, index) => [`mkdir -p '${folder}'`, `mount --move /mnt/${index} '${folder}'`]),
    'mount -o remount,bind,ro /',
    'if touch /etc/gpuwarden-was-here 2>/dev/null; then echo the file system is not read-only >&2; exit 99; fi',
    `exec ${[...asNobody, ...execStart('system', states)].join(' ')}`,
  ].join('\n')
  const env = {
    PATH: process.env.PATH,
    HOME: state,
    STATE_DIRECTORY: state,
    GPUWARDEN_SOURCE: 'demo',
    GPUWARDEN_SERVER_PORT: String(port),
    NOTIFY_SOCKET: systemd.socket,
    WATCHDOG_USEC: String(WATCHDOG_MS * 1000),
  }
  const child = spawn('unshare', ['--mount', 'sh', '-c', prepare], { env, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
  let text = ''
  child.stderr?.on('data', (data) => {
    text += data
  })
  return { child, log: () => text, port }
}

const reason = whyNotShutIn()
const signs = (systemd: PretendSystemd) => systemd.said().split('WATCHDOG=1').length - 1

describe.skipIf(reason !== '')(`the unit's command, shut in as the unit says${reason}`, () => {
  it('watches as nobody on a read-only file system, writes to its own folder alone, and ends when asked', async () => {
    const socketFolder = temporaryFolder()
    const states = temporaryFolder()
    for (const folder of [socketFolder, states]) chmodSync(folder, 0o755)
    const systemd = await pretendSystemd(socketFolder)
    const { child, log, port } = await shutIn(systemd, states, socketFolder)
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    try {
      await until('it watches and gives signs of life', () => log().includes('gpuwarden is watching') && signs(systemd) > 0).catch(
        (cause) => {
          throw new Error(log(), { cause })
        },
      )
      expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200)
      expect(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).toContain('gpu_utilization_percent')
      await until('it writes its log', () => readdirSync(join(states, 'gpuwarden')).some((name) => name.startsWith('gpu_metrics_')))
      expect(log()).not.toMatch(/EROFS|EACCES|read-only/)

      // A process that hangs gives no sign: that is what systemd waits for. One that goes on does again.
      process.kill(child.pid ?? 0, 'SIGSTOP')
      await new Promise((resolve) => setTimeout(resolve, WATCHDOG_MS))
      const before = signs(systemd)
      await new Promise((resolve) => setTimeout(resolve, 2 * WATCHDOG_MS))
      expect(signs(systemd)).toBe(before)
      process.kill(child.pid ?? 0, 'SIGCONT')
      await until('it gives signs again', () => signs(systemd) > before)
    } finally {
      child.kill('SIGTERM')
    }
    expect(await ended).toBe(0)
    systemd.stop()
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow()
  }, 120_000)
})

const isBooted = existsSync('/run/systemd/system') && process.getuid?.() === 0
const notBooted = isBooted ? '' : ' (skipped: systemd is not PID 1 here, or we are not root)'

describe.skipIf(!isBooted)(`under systemd itself${notBooted}`, () => {
  it('starts, is started anew when it hangs, and stops', async () => {
    const name = `gpuwarden-test-${process.pid}.service`
    const file = join('/run/systemd/system', name)
    const port = await freePort()
    const environment = `Environment=GPUWARDEN_SOURCE=demo GPUWARDEN_SERVER_PORT=${port}`
    const text = unitText({ scope: 'system', ...PLACES })
      .replaceAll('gpuwarden\n', 'gpuwarden-test\n')
      .replace(/^WatchdogSec=.*$/m, `WatchdogSec=5\n${environment}`)
    const systemctl = (...args: string[]) => spawnSync('systemctl', args, { encoding: 'utf8' }).stdout.trim()
    const show = (property: string) => systemctl('show', '--value', '-p', property, name)
    const answers = async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok
    writeFileSync(file, text)
    try {
      systemctl('daemon-reload')
      systemctl('start', name)
      await until('it answers', answers)
      const first = show('MainPID')
      process.kill(Number(first), 'SIGSTOP')
      await until('it was started anew', () => show('NRestarts') === '1' && show('MainPID') !== first, 60_000)
      await until('it answers again', answers)
      systemctl('stop', name)
      expect(show('Result')).toBe('success')
      expect(show('ActiveState')).toBe('inactive')
    } finally {
      systemctl('stop', name)
      rmSync(file)
      systemctl('daemon-reload')
      for (const folder of ['/var/lib/gpuwarden-test', '/var/lib/private/gpuwarden-test']) rmSync(folder, { recursive: true, force: true })
    }
  }, 180_000)
})
