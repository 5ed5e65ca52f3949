/** The list of commands. Each is one file, loaded when it is asked for. */
import type { Config, ConfigKey } from '../config.ts'

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** Which settings are flags of this command. */
  readonly settings: readonly ConfigKey[]
  readonly options: readonly { readonly flag: string; readonly help: string }[]
  readonly examples: readonly string[]
  run(config: Config, options: Record<string, unknown>): Promise<number>
}

const SOURCE_FLAGS = [
  'source',
  'devices',
  'demo.gpus',
  'demo.scenario',
  'demo.seed',
  'replay.speed',
  'deadline',
  'wake',
] as const satisfies readonly ConfigKey[]
const ONE_GPU = { flag: '--gpu <index>', help: 'only this GPU' }

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'monitor',
    summary: 'watch the GPUs: log, /metrics, API, until Ctrl-C',
    settings: [
      ...SOURCE_FLAGS,
      'interval',
      'log.dir',
      'server.port',
      'server.host',
      'server.token',
      'server.token_file',
      'server.prometheus_port',
      'metrics.sets',
      'log.level',
      'log.stderr',
    ],
    options: [
      ONE_GPU,
      { flag: '--duration <seconds>', help: 'stop after this long (0: until Ctrl-C)' },
      { flag: '--quiet', help: 'print nothing but errors' },
    ],
    examples: [
      'gpuwarden monitor --gpu 0 --interval 1.0',
      'gpuwarden monitor --devices 0 1 --log-dir ./gpu_logs --prometheus-port 9090',
      'gpuwarden monitor --source demo --demo-gpus 8 --demo-scenario all',
      'gpuwarden monitor --source replay:./gpu_logs --speed 10',
    ],
    run: async (config, options) => (await import('./monitor.ts')).monitor(config, options),
  },
  {
    name: 'status',
    summary: 'one look at memory and use, then end',
    settings: SOURCE_FLAGS,
    options: [ONE_GPU, { flag: '--json', help: 'as JSON' }],
    examples: ['gpuwarden status', 'gpuwarden status --json --devices 0 1'],
    run: async (config, options) => (await import('./status.ts')).status(config, options),
  },
  {
    name: 'metrics',
    summary: 'one Prometheus scrape to standard output',
    settings: [...SOURCE_FLAGS, 'metrics.sets'],
    options: [ONE_GPU],
    examples: ['gpuwarden metrics', 'gpuwarden metrics --metrics native,dcgm > /var/lib/node_exporter/gpu.prom'],
    run: async (config) => (await import('./metrics.ts')).metrics(config),
  },
  {
    name: 'doctor',
    summary: 'check drivers, libraries, permissions, ports and disk',
    settings: ['log.dir', 'server.port', 'server.host', 'deadline'],
    options: [{ flag: '--json', help: 'as JSON' }],
    examples: ['gpuwarden doctor', 'gpuwarden doctor --json'],
    run: async (config, options) => (await import('./doctor.ts')).doctor(config, options),
  },
  {
    name: 'config',
    summary: 'print the effective configuration and where each value came from',
    settings: [
      ...SOURCE_FLAGS,
      'interval',
      'log.dir',
      'server.port',
      'server.host',
      'server.token',
      'server.token_file',
      'server.prometheus_port',
      'metrics.sets',
      'log.level',
      'log.stderr',
    ],
    options: [{ flag: '--json', help: 'as JSON' }],
    examples: ['gpuwarden config', 'MONITORING_INTERVAL=30 gpuwarden config --json'],
    run: async (config, options) => (await import('./config.ts')).printConfig(config, options),
  },
]
