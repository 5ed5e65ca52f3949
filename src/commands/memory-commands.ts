import type { ConfigKey } from '../agent/config.ts'
import { type CommandEntry, JSON_OPTION, ONE_GPU, SOURCE_FLAGS } from './command-entry.ts'
import { FAST_INTERVAL_SECONDS } from './fast-interval.ts'

const WATCH_FLAGS = [...SOURCE_FLAGS, 'interval'] as const satisfies readonly ConfigKey[]
/** The memory tools read recordings as fast as they can. */
const WATCH_DEFAULTS = { interval: String(FAST_INTERVAL_SECONDS), 'replay.speed': 'max' } as const
const SNAPSHOT_FILE = { notation: '[snapshot]', help: 'a memory snapshot of PyTorch, plain or gzip: its verdict instead of live GPUs' }
const GPU_MEMORY = { flag: '--memory <size>', help: 'of a snapshot file: the memory of the GPU, such as 80GiB' }
const duration = (seconds: number, otherwise = '') => ({
  flag: '--duration <seconds>',
  help: `how long to watch (default: ${seconds}${otherwise}; 0: until Ctrl-C; a recording: all of it)`,
})

export const MEMORY_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'profile',
    group: 'memory',
    summary: 'profile GPU memory for a while: a report, a page, a plot (samples every 0.1 s)',
    settings: WATCH_FLAGS,
    defaults: WATCH_DEFAULTS,
    options: [
      ONE_GPU,
      duration(60),
      { flag: '--output <file>', help: 'write the report to this file, as JSON' },
      { flag: '--html <file>', help: 'write a single page with charts' },
      { flag: '--plot <file>', help: 'draw memory over time; .svg or .png' },
      JSON_OPTION,
    ],
    examples: [
      'gpuwarden profile --duration 60 --output profile.json',
      'gpuwarden profile --devices 0 1 --duration 0 --html profile.html',
      'gpuwarden profile --source replay:./gpu_logs --plot memory.png',
    ],
    run: async (config, options) => (await import('./profile.ts')).profile(config, options),
  },
  {
    name: 'oom',
    group: 'memory',
    summary: 'how close GPU memory is to running out; exit code 1 if the risk is high or critical',
    settings: WATCH_FLAGS,
    defaults: WATCH_DEFAULTS,
    options: [
      ONE_GPU,
      { flag: '--threshold <percent>', help: 'percentage of memory in use at which a warning is given (default: 85)' },
      { flag: '--monitor', help: 'keep running and print each warning as it comes (exit code 0)' },
      duration(10, ', with --monitor 0'),
      GPU_MEMORY,
      JSON_OPTION,
    ],
    arguments: [SNAPSHOT_FILE],
    examples: [
      'gpuwarden oom --threshold 85 --monitor',
      'gpuwarden oom --devices 0 --threshold 90',
      'gpuwarden oom --json --duration 30',
      'gpuwarden oom snapshot.pickle',
    ],
    run: async (config, options, args) =>
      args.length > 0
        ? (await import('./snapshot-verdicts.ts')).oomOfSnapshot(config, options, args)
        : (await import('./oom.ts')).oom(config, options),
  },
  {
    name: 'leak',
    group: 'memory',
    summary: 'find memory leaks, per GPU, process and run; exit code 1 if there is one',
    settings: WATCH_FLAGS,
    defaults: WATCH_DEFAULTS,
    options: [
      ONE_GPU,
      { flag: '--check', help: 'one verdict at the end (default)' },
      { flag: '--monitor', help: 'keep running and print each leak as it is found' },
      { flag: '--threshold <megabytes>', help: 'growth below this many MB does not count as a leak (default: 100)' },
      duration(60, ', with --monitor 0'),
      GPU_MEMORY,
      JSON_OPTION,
    ],
    arguments: [SNAPSHOT_FILE],
    examples: [
      'gpuwarden leak --check --threshold 100',
      'gpuwarden leak --duration 600 --json',
      'gpuwarden leak --source replay:./gpu_logs',
      'gpuwarden leak snapshot.pickle --memory 80GiB',
    ],
    run: async (config, options, args) =>
      args.length > 0
        ? (await import('./snapshot-verdicts.ts')).leakOfSnapshot(config, options, args)
        : (await import('./leak.ts')).leak(config, options),
  },
  {
    name: 'frag',
    group: 'memory',
    summary: 'where the memory of each GPU goes, and what training runs lose to fragmentation',
    settings: WATCH_FLAGS,
    defaults: WATCH_DEFAULTS,
    options: [ONE_GPU, { flag: '--run <id>', help: 'only this run', values: 'run' }, duration(10), JSON_OPTION],
    arguments: [SNAPSHOT_FILE],
    examples: ['gpuwarden frag', 'gpuwarden frag --source replay:./gpu_logs --run my-run --json', 'gpuwarden frag snapshot.pickle'],
    run: async (config, options, args) =>
      args.length > 0
        ? (await import('./snapshot-verdicts.ts')).fragOfSnapshot(config, options, args)
        : (await import('./frag.ts')).frag(config, options),
  },
  {
    name: 'snapshot',
    group: 'memory',
    summary: 'what a memory snapshot of PyTorch says, how two differ, or which line of a run that goes on keeps memory',
    settings: ['server.port', 'server.token', 'server.token_file'],
    arguments: [
      { notation: '[file]', help: 'written by torch.cuda.memory._dump_snapshot(); plain or gzip' },
      { notation: '[file2]', help: 'compare with this one' },
    ],
    options: [
      ONE_GPU,
      {
        flag: '--run <name>',
        help: 'ask this run, by name or id, to record for some steps; exit code 1 if a line keeps memory',
        values: 'run',
      },
      { flag: '--steps <count>', help: 'with --run: how many steps (default: by the time of a step, 12 to 40)' },
      { flag: '--rank <number>', help: 'with --run: of this rank (default: the one that reports next)' },
      { flag: '--host', help: 'with --run: Python objects in host memory, with tracemalloc, instead of GPU memory' },
      {
        flag: '--at <moment>',
        help: 'peak (default), end, oom, seconds after the first event, a time, or #INDEX of an event',
        values: ['peak', 'end', 'oom'],
      },
      { flag: '--text', help: 'as text (default)' },
      JSON_OPTION,
      {
        flag: '--html <file>',
        help: 'write a page with pictures that opens without a server: timeline, segments, flame graph, differences',
      },
      { flag: '--folded', help: 'stacks in use with their bytes, one a line, for flame graph tools' },
      { flag: '--min <size>', help: 'leave out rows of less, such as 1MiB' },
      { flag: '--match <regex>', help: 'only allocations with a frame ("file:line name") or metadata that matches' },
      { flag: '--stream <number>', help: 'only allocations of this stream' },
      { flag: '--pool <id>', help: 'only allocations of this pool, such as 0.1' },
      { flag: '--category <name=regex...>', help: 'stacks that match are of this category' },
      { flag: '--memory <size>', help: 'memory of the GPU, such as 80GiB: when a leak fills it, and what lies outside PyTorch' },
    ],
    examples: [
      'gpuwarden snapshot snapshot.pickle',
      'gpuwarden snapshot snapshot.pickle.gz --at oom --json',
      'gpuwarden snapshot snapshot.pickle --html memory.html',
      'gpuwarden snapshot before.pickle after.pickle --at end --min 1MiB',
      'gpuwarden snapshot snapshot.pickle --folded | flamegraph.pl --countname bytes > memory.svg',
      "gpuwarden snapshot snapshot.pickle --match 'model.py' --category 'weights=build_model'",
      'gpuwarden snapshot --run train.py --steps 20',
    ],
    run: async (config, options, args) =>
      options.run !== undefined
        ? (await import('./record-run.ts')).recordRun(config, options, args)
        : (await import('./snapshot.ts')).snapshot(config, options, args),
  },
  {
    name: 'detect',
    group: 'memory',
    summary: 'run all detectors over a recording, or score sudden changes in a CSV column',
    settings: ['source', 'devices'],
    arguments: [{ notation: '[path]', help: 'a log folder, a .jsonl or .jsonl.gz, or a CSV log of nvidia-smi' }],
    options: [
      ONE_GPU,
      { flag: '--duration <seconds>', help: 'only this much recorded time from the beginning (default: 0, all)' },
      { flag: '--until <time>', help: 'stop at this time: 2026-11-15T06:34:10Z, or seconds since 1970' },
      { flag: '--csv <file>', help: 'score a column of this CSV file instead' },
      { flag: '--time <column>', help: 'its column with the times' },
      { flag: '--value <column>', help: 'its column with the series' },
      {
        flag: '--as <kind>',
        help: 'with --csv: "memory" judges the column as memory in use, as the agent would (leak, oom, memory_pressure)',
      },
      { flag: '--capacity <bytes>', help: 'with --as memory: how much memory there is, in bytes or as 80GiB' },
      { flag: '--scores', help: 'one score from 0 to 1 per row, with its time (what --csv prints)' },
      { flag: '--json', help: 'findings as NDJSON (the default where the output is not a terminal)' },
    ],
    examples: [
      'gpuwarden detect ./gpu_logs',
      'gpuwarden detect gpu_metrics_20261115_062538.jsonl.gz --json --until 2026-11-15T06:30:00Z',
      'gpuwarden detect nvidia-smi.csv',
      'gpuwarden detect --csv data.csv --time timestamp --value memory.used --scores',
      'gpuwarden detect --csv data.csv --time timestamp --value used --capacity 80GiB --as memory --json',
    ],
    run: async (config, options, args) => (await import('./detect.ts')).detect(config, options, args),
  },
]
