/** The text of the systemd unit. Every line that takes a right away, or leaves one, is here. */
import type { DriverUnit } from '../core/vendor.ts'

export type Scope = 'system' | 'user'

export interface UnitOptions {
  readonly scope: Scope
  /** What starts gpuwarden, with absolute paths: Node.js and bin/gpuwarden.js, or one program. */
  readonly command: readonly string[]
  /** null: a user that exists only while the service runs. Only for the system. */
  readonly runAs: string | null
  /** null: the places where gpuwarden looks by itself. */
  readonly config: string | null
  readonly drivers: readonly DriverUnit[]
}

type Lines = readonly (string | null)[]

const WATCHDOG_SECONDS = 90

export function unitText(options: UnitOptions): string {
  const sections = [unit(options), service(options), install(options)]
  return `${sections.map((lines) => lines.filter((line) => line !== null).join('\n')).join('\n\n')}\n`
}

function unit({ scope, drivers }: UnitOptions): Lines {
  return [
    '[Unit]',
    'Description=gpuwarden watches the GPUs of this machine and the training on them',
    scope === 'system' ? 'Wants=network-online.target' : null,
    scope === 'system' ? `After=${['network-online.target', ...drivers.flatMap(({ after }) => after)].join(' ')}` : null,
    '# After ten starts in ten minutes an eleventh will not help.',
    'StartLimitIntervalSec=600',
    'StartLimitBurst=10',
  ]
}

function service(options: UnitOptions): Lines {
  const { scope, config } = options
  return [
    '[Service]',
    'Type=exec',
    `ExecStart=${options.command.map(quoted).join(' ')} service run --log-dir %S/gpuwarden${config === null ? '' : ` --config ${quoted(config)}`}`,
    '# Secrets (GPUWARDEN_SERVER_TOKEN=…, EMAIL_PASSWORD=…) belong here, not in the unit.',
    scope === 'system' ? 'EnvironmentFile=-/etc/gpuwarden/environment' : 'EnvironmentFile=-%E/gpuwarden/environment',
    'StateDirectory=gpuwarden',
    'StateDirectoryMode=0750',
    '# Alert decisions that are not in their file yet.',
    'RuntimeDirectory=gpuwarden-alerts',
    'RuntimeDirectoryMode=0700',
    'RuntimeDirectoryPreserve=restart',
    'UMask=0027',
    'Restart=always',
    'RestartSec=5',
    'TimeoutStopSec=30',
    '# "gpuwarden service run" sends its heartbeat through systemd-notify, a separate process: hence all.',
    'NotifyAccess=all',
    `WatchdogSec=${WATCHDOG_SECONDS}`,
    'MemoryHigh=384M',
    'MemoryMax=512M',
    'TasksMax=128',
    '',
    'NoNewPrivileges=yes',
    'LockPersonality=yes',
    'RestrictRealtime=yes',
    'RestrictSUIDSGID=yes',
    'RestrictNamespaces=yes',
    'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK',
    'SystemCallArchitectures=native',
    'SystemCallFilter=@system-service',
    'SystemCallFilter=~@privileged @resources',
    'SystemCallErrorNumber=EPERM',
    ...(scope === 'system' ? systemOnly(options) : userNote()),
  ]
}

function systemOnly({ runAs, command, config, drivers }: UnitOptions): Lines {
  const inHome = [...command, config ?? ''].some((path) => /^\/(home|root|run\/user)\//.test(path))
  return [
    ...(runAs === null ? ['DynamicUser=yes'] : [`User=${runAs}`, 'RemoveIPC=yes']),
    'Environment=HOME=%S/gpuwarden',
    'ProtectSystem=strict',
    inHome ? '# The program itself is there.' : null,
    `ProtectHome=${inHome ? 'read-only' : 'yes'}`,
    'PrivateTmp=yes',
    'ProtectKernelTunables=yes',
    'ProtectKernelModules=yes',
    'ProtectControlGroups=yes',
    'ProtectClock=yes',
    'ProtectHostname=yes',
    'KeyringMode=private',
    '# Out-of-memory kills, and XIDs that NVML does not report, are in the kernel log: ProtectKernelLogs= must stay off, and reading it needs CAP_SYSLOG.',
    'CapabilityBoundingSet=CAP_SYSLOG',
    'AmbientCapabilities=CAP_SYSLOG',
    '# The owners of GPU processes are read from /proc: ProtectProc= and PrivateUsers= must stay off.',
    ...drivers.flatMap(({ note }) => (note === null ? [] : [`# ${note}`])),
    'DevicePolicy=closed',
    ...drivers.flatMap(({ devices }) => devices.map((device) => `DeviceAllow=${device}`)),
    'DeviceAllow=/dev/kmsg r',
    '# V8 compiles at run time: MemoryDenyWriteExecute= must stay off.',
  ]
}

function userNote(): Lines {
  return [
    '# A user manager can hide files and devices only with a user namespace, in which all other users have the same name:',
    '# the owners of processes would be lost. A user unit may reach what you may reach.',
  ]
}

function install({ scope }: UnitOptions): Lines {
  return ['[Install]', `WantedBy=${scope === 'system' ? 'multi-user.target' : 'default.target'}`]
}

/** systemd's own quoting: a path with a space, a percent sign or a quote stays one word. */
export function quoted(path: string): string {
  const text = path.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[\w@%+=:,./~$-]+$/.test(text) ? text : `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
