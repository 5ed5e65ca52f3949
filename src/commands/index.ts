/** The list of commands. Each is one file, loaded when it is asked for. */
import type { ConfigKey } from '../agent/config.ts'
import type { CommandEntry } from './command-entry.ts'
import { MEMORY_COMMANDS } from './memory-commands.ts'
import { SERVICE_COMMANDS } from './service-commands.ts'

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
const AGENT_FLAGS = [
  ...SOURCE_FLAGS,
  'interval',
  'log.dir',
  'server.port',
  'server.host',
  'server.token',
  'server.token_file',
  'server.prometheus_port',
  'metrics.sets',
  'push.remote_write.url',
  'push.otlp.url',
  'log.level',
  'log.stderr',
] as const satisfies readonly ConfigKey[]
const ONE_GPU = { flag: '--gpu <index>', help: 'only this GPU' }

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'top',
    summary: 'live view in the terminal',
    settings: [...SOURCE_FLAGS, 'interval', 'server.port', 'server.token', 'server.token_file'],
    options: [
      ONE_GPU,
      { flag: '--connect <url>', help: 'show the agent at this address' },
      { flag: '--theme <name>', help: 'dark, light or mono (NO_COLOR also takes the colours away)' },
      { flag: '--ascii', help: 'draw with ASCII characters alone' },
      { flag: '--readonly', help: 'never signal a process' },
      { flag: '--once', help: 'print one frame as text, then end' },
      { flag: '--svg', help: 'print one frame as an SVG picture, then end' },
    ],
    examples: [
      'gpuwarden top',
      'gpuwarden top --connect http://node7:4780 --token-file ~/.config/gpuwarden/node7.token',
      'gpuwarden top --source replay:./gpu_logs --speed 10',
      'gpuwarden top --source demo --demo-gpus 8 --demo-scenario all',
      'COLUMNS=120 LINES=40 gpuwarden top --once',
    ],
    run: async (config, options) => (await import('./top.ts')).top(config, options),
  },
  {
    name: 'monitor',
    summary: 'watch the GPUs: log, /metrics, API, until Ctrl-C',
    settings: AGENT_FLAGS,
    options: [
      ONE_GPU,
      { flag: '--duration <seconds>', help: 'stop after this long (0: until Ctrl-C)' },
      { flag: '--quiet', help: 'print nothing but errors' },
      { flag: '--all', help: 'every feature: what monitor does anyway' },
      { flag: '--json', help: 'print findings as they come, as NDJSON, and nothing else' },
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
    name: 'alerts',
    summary: 'what the running agent alerts of: list, history, silence, unsilence, ack, unack; and test of the channels',
    settings: ['server.host', 'server.port', 'server.token', 'server.token_file', 'log.dir'],
    options: [
      { flag: '--for <duration>', help: 'how long a silence or an acknowledgement lasts: 30m, 2h, 1d (default: 4h)' },
      { flag: '--comment <text>', help: 'why it is silenced' },
      { flag: '--json', help: 'as JSON' },
    ],
    arguments: [
      { notation: '[action]', help: 'list (default), history, silence, unsilence, ack, unack or test' },
      { notation: '[what...]', help: 'matchers of a silence, its id, the fingerprint of an alert, or the name of a channel' },
    ],
    examples: [
      'gpuwarden alerts',
      'gpuwarden alerts silence gpu=0 detector=thermal --for 2h --comment "fan is being replaced"',
      'gpuwarden alerts unsilence 4f0c1d2e3a5b',
      'gpuwarden alerts ack thermal --for 1d',
      'gpuwarden alerts test email',
    ],
    run: async (config, options, args) => (await import('./alerts.ts')).alerts(config, options, args),
  },
  ...MEMORY_COMMANDS,
  ...SERVICE_COMMANDS,
  {
    name: 'run',
    summary: 'run a command and watch it: its GPUs, its training; a summary at the end, and its exit code',
    settings: [...SOURCE_FLAGS, 'interval', 'log.dir', 'server.port', 'server.host', 'server.token', 'server.token_file'],
    options: [
      { flag: '--name <name>', help: 'what the run is called (default: the name of the script or program)' },
      { flag: '--parse-output', help: 'look for loss and learning rate in what the command prints' },
      { flag: '--price-per-hour <dollars>', help: 'what one GPU costs per hour (default: a list price by the name of the card)' },
      { flag: '--report <file>', help: 'write an HTML report when it has ended' },
      { flag: '--quiet', help: 'print no summary' },
    ],
    arguments: [{ notation: '[command...]', help: 'after --: the command and its arguments' }],
    examples: [
      'gpuwarden run -- python train.py --lr 3e-4',
      'gpuwarden run --name resnet --report report.html --price-per-hour 2.50 -- torchrun --nproc-per-node 8 train.py',
      'gpuwarden run --parse-output -- ./train.sh',
    ],
    run: async (config, options, args) => (await import('./run.ts')).run(config, options, args),
  },
  {
    name: 'report',
    summary: 'what a recording, or one run of it, looked like: text, JSON or one HTML file',
    settings: ['log.dir'],
    options: [
      { flag: '--html <file>', help: 'write a page with charts that opens from disk' },
      { flag: '--json', help: 'as JSON' },
      { flag: '--text', help: 'as text (the default when nothing else is asked for)' },
      { flag: '--price-per-hour <dollars>', help: 'what one GPU costs per hour (default: a list price by the name of the card)' },
    ],
    arguments: [{ notation: '[logdir|run]', help: 'a log folder, one of its files, or the id or name of a run in --log-dir' }],
    examples: [
      'gpuwarden report ./gpu_logs --html report.html',
      'gpuwarden report train.py --log-dir ./gpu_logs',
      'gpuwarden report --json',
    ],
    run: async (config, options, args) => (await import('./report.ts')).report(config, options, args),
  },
  {
    name: 'import',
    summary: 'deliver the spool files that an SDK kept while no agent answered',
    settings: ['log.dir', 'server.host', 'server.port', 'server.token', 'server.token_file'],
    options: [{ flag: '--keep', help: 'do not remove a file that was delivered' }],
    arguments: [{ notation: '[spool...]', help: 'spool files, or folders of them' }],
    examples: ['gpuwarden import ~/.cache/gpuwarden/spool', 'gpuwarden import --keep run-4f1c.jsonl --log-dir ./gpu_logs'],
    run: async (config, options, args) => (await import('./import.ts')).importSpools(config, options, args),
  },
  {
    name: 'accuracy',
    summary: 'how often what was forecast on this machine came true, and how long before it was said',
    settings: ['log.dir'],
    options: [
      { flag: '--days <number>', help: 'how far to look back (default: 30)' },
      { flag: '--json', help: 'as JSON' },
    ],
    examples: ['gpuwarden accuracy', 'gpuwarden accuracy --days 7 --log-dir /var/log/gpuwarden'],
    run: async (config, options) => (await import('./accuracy.ts')).accuracy(config, options),
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
    settings: AGENT_FLAGS,
    options: [{ flag: '--json', help: 'as JSON' }],
    examples: ['gpuwarden config', 'MONITORING_INTERVAL=30 gpuwarden config --json'],
    run: async (config, options) => (await import('./config.ts')).printConfig(config, options),
  },
]
