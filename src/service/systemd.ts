import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { EXIT, Failure } from '../core/failure.ts'
import { type Scope, type UnitOptions, unitText } from './unit.ts'

export const UNIT = 'gpuwarden.service'

export interface Place {
  readonly scope: Scope
  /** Prefix of every path that is written: `/` in life; an image or a temporary folder otherwise. */
  readonly root: string
  readonly env: Readonly<Record<string, string | undefined>>
}

export function unitPath({ scope, root, env }: Place): string {
  const config = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config')
  return join(root, scope === 'system' ? '/etc/systemd/system' : join(config, 'systemd/user'), UNIT)
}

export interface Systemctl {
  readonly status: number
  readonly output: string
}

export function systemctl(scope: Scope, args: readonly string[]): Systemctl {
  const { status, stdout, stderr, error } = spawnSync('systemctl', [...(scope === 'user' ? ['--user'] : []), ...args], { encoding: 'utf8' })
  if (error !== undefined)
    throw new Failure(`systemctl cannot be run: ${error.message}`, {
      exitCode: EXIT.noSource,
      hint: 'This machine does not use systemd. docs/service.md describes a container, a DaemonSet and plain ssh.',
    })
  return { status: status ?? 1, output: `${stdout}${stderr}`.trim() }
}

function mustDo(scope: Scope, args: readonly string[]): void {
  const { status, output } = systemctl(scope, args)
  if (status === 0) return
  throw new Failure(`systemctl ${args.join(' ')} failed (${status}): ${output}`, {
    exitCode: EXIT.checkFailed,
    hint: scope === 'user' ? 'A user service needs a login session; on a server: loginctl enable-linger $USER' : 'Run it as root: sudo …',
  })
}

export function installUnit(place: Place, options: UnitOptions, start: boolean): string {
  const path = unitPath(place)
  try {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, unitText(options))
  } catch (cause) {
    throw new Failure(`${path} cannot be written: ${(cause as Error).message}`, {
      exitCode: EXIT.checkFailed,
      hint: place.scope === 'system' ? 'Run it as root (sudo), or leave --system out for a user service.' : null,
      cause,
    })
  }
  // In an image there is no systemd to talk to; the unit is enabled when it boots.
  if (place.root !== '/') return path
  mustDo(place.scope, ['daemon-reload'])
  mustDo(place.scope, start ? ['enable', '--now', UNIT] : ['enable', UNIT])
  return path
}

export function uninstallUnit(place: Place): string | null {
  const path = unitPath(place)
  if (!existsSync(path)) return null
  if (place.root === '/') mustDo(place.scope, ['disable', '--now', UNIT])
  rmSync(path)
  if (place.root === '/') mustDo(place.scope, ['daemon-reload'])
  return path
}

export interface ServiceStatus {
  readonly path: string
  readonly isInstalled: boolean
  readonly enabled: string
  readonly active: string
  readonly details: string
}

export function serviceStatus(place: Place): ServiceStatus {
  const path = unitPath(place)
  const isInstalled = existsSync(path)
  if (!isInstalled) return { path, isInstalled, enabled: 'no', active: 'no', details: '' }
  return {
    path,
    isInstalled,
    enabled: systemctl(place.scope, ['is-enabled', UNIT]).output,
    active: systemctl(place.scope, ['is-active', UNIT]).output,
    details: systemctl(place.scope, ['status', '--no-pager', '--lines=5', UNIT]).output,
  }
}
