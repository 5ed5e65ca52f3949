import { resolve } from 'node:path'
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { launchCommand } from '../core/launcher.ts'
import { installUnit, type Place, serviceStatus, systemctl, UNIT, uninstallUnit } from '../service/systemd.ts'
import { type UnitOptions, unitText } from '../service/unit.ts'
import { startWatchdog } from '../service/watchdog.ts'
import { VENDORS } from '../sources/vendors.ts'

const ACTIONS = ['install', 'uninstall', 'status', 'run'] as const

export async function service(config: Config, options: Record<string, unknown>, args: readonly string[]): Promise<number> {
  const action = ACTIONS.find((name) => name === args[0])
  if (action === undefined)
    throw new Failure(`service: expected one of ${ACTIONS.join(', ')}; got ${JSON.stringify(args[0] ?? '')}`, { exitCode: EXIT.usage })
  if (action === 'run') return run(config)
  const place = placeOf(options)
  if (action === 'install') return install(place, options, config)
  if (action === 'uninstall') return uninstall(place)
  return status(place)
}

/** Root asks for the system's service, anybody else for their own, unless they say otherwise. */
function placeOf(options: Record<string, unknown>): Place {
  if (options.system === true && options.user === true) throw new Failure('service: --system or --user, not both', { exitCode: EXIT.usage })
  const isSystem = options.system === true || (options.user !== true && process.getuid?.() === 0)
  return { scope: isSystem ? 'system' : 'user', root: resolve(String(options.root ?? '/')), env: process.env }
}

function unitOptions({ scope }: Place, options: Record<string, unknown>, config: Config): UnitOptions {
  const runAs = options.runAs === undefined ? null : String(options.runAs)
  if (runAs !== null && scope === 'user') throw new Failure('service: --run-as is for --system only', { exitCode: EXIT.usage })
  return {
    scope,
    command: launchCommand(),
    runAs,
    config: config.file === null ? null : resolve(config.file),
    drivers: VENDORS.map(({ unit }) => unit),
  }
}

function install(place: Place, options: Record<string, unknown>, config: Config): number {
  const unit = unitOptions(place, options, config)
  if (options.dryRun === true) {
    process.stdout.write(unitText(unit))
    return EXIT.ok
  }
  const path = installUnit(place, unit, options.start !== false)
  process.stdout.write(`Installed ${path}\n`)
  if (place.root === '/') process.stdout.write(`${systemctl(place.scope, ['is-active', UNIT]).output}; its log: ${journal(place)}\n`)
  return EXIT.ok
}

function uninstall(place: Place): number {
  const path = uninstallUnit(place)
  process.stdout.write(path === null ? 'The service is not installed.\n' : `Removed ${path}; configuration and logs are kept.\n`)
  return EXIT.ok
}

function status(place: Place): number {
  const { path, isInstalled, enabled, active, details } = serviceStatus(place)
  process.stdout.write(isInstalled ? `${path}\nenabled: ${enabled}\nactive: ${active}\n\n${details}\n` : `Not installed (${path}).\n`)
  return active === 'active' ? EXIT.ok : EXIT.checkFailed
}

function journal({ scope }: Place): string {
  return `journalctl ${scope === 'user' ? '--user-unit' : '-u'} gpuwarden -f`
}

/** What the unit starts: the monitor, with a heartbeat for systemd. */
async function run(config: Config): Promise<number> {
  const { monitor } = await import('./monitor.ts')
  const stop = startWatchdog({
    env: process.env,
    pid: process.pid,
    onFailure: (reason) => process.stderr.write(`${JSON.stringify({ level: 'warn', msg: `no sign of life for systemd: ${reason}` })}\n`),
  })
  try {
    return await monitor(config, { isService: true })
  } finally {
    stop()
  }
}
