import type { CommandEntry } from './command-entry.ts'

const EXPORT = [
  { notation: '<action>', help: 'export', values: ['export'] },
  { notation: '<dir>', help: 'folder to write to', values: 'dir' },
] as const

export const SERVICE_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'service',
    group: 'operate',
    summary: 'run gpuwarden as a systemd service: install, uninstall, status',
    settings: ['log.dir', 'log.level'],
    arguments: [
      {
        notation: '<action>',
        help: 'install, uninstall, status, or run (what the unit starts)',
        values: ['install', 'uninstall', 'status', 'run'],
      },
    ],
    options: [
      { flag: '--system', help: 'for the whole machine (default for root)' },
      { flag: '--user', help: 'for you only (default for anybody else)' },
      { flag: '--run-as <user>', help: 'an existing user, instead of one created for the service' },
      { flag: '--no-start', help: 'enable it for the next boot only' },
      { flag: '--dry-run', help: 'print the unit and do nothing' },
      { flag: '--root <dir>', help: 'write below this folder (for images); do not call systemctl' },
    ],
    examples: [
      'sudo gpuwarden service install',
      'gpuwarden service install --user',
      'gpuwarden service install --dry-run',
      'gpuwarden service status',
    ],
    run: async (config, options, args) => (await import('./service.ts')).service(config, options, args),
  },
  {
    name: 'grafana',
    group: 'operate',
    summary: 'write the Grafana dashboards to a folder',
    settings: [],
    arguments: EXPORT,
    options: [],
    examples: ['gpuwarden grafana export ./dashboards'],
    run: async (_config, _options, args) => (await import('./grafana.ts')).grafana(args),
  },
  {
    name: 'rules',
    group: 'operate',
    summary: 'write the Prometheus rules and their runbooks to a folder',
    settings: [],
    arguments: EXPORT,
    options: [{ flag: '--runbook-url <url>', help: 'address of your runbooks, for the runbook_url of the alerts' }],
    examples: ['gpuwarden rules export /etc/prometheus/gpuwarden', 'gpuwarden rules export ./rules --runbook-url https://wiki/gpu'],
    run: async (_config, options, args) => (await import('./rules.ts')).rules(options, args),
  },
]
