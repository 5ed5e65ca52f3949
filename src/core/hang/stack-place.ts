/** What a thread does, in words, by its stack and by what the kernel says of it. */
import type { RankStacks, StackFrame, ThreadStack } from './rank-stacks.ts'

export type Doing = 'collective' | 'backward' | 'data' | 'saving' | 'compiling' | 'other'

export interface StackPlace {
  /** `dataloader.py:1286`; null: not known. */
  readonly place: string | null
  /** The program's own line that led there, where that is another one: `train.py:77`. */
  readonly own: string | null
  readonly doing: Doing
  /** `waiting for a worker`; null: not known. */
  readonly words: string | null
  /** Of a collective: `all_reduce`. */
  readonly op: string | null
}

interface Rule {
  readonly file: RegExp
  readonly function?: RegExp
  readonly doing: Doing
  readonly words: string
  /** The place is this frame, not the innermost line of the program below it. */
  readonly isPlace?: true
}

/** Of the innermost frame that one applies to. */
const RULES: readonly Rule[] = [
  {
    file: /torch\/utils\/data\/dataloader\.py$/,
    function: /_get_data|_try_get_data|_next_data$/,
    doing: 'data',
    words: 'waiting for a worker',
    isPlace: true,
  },
  { file: /torch\/utils\/data\/(dataloader|_utils\/fetch)\.py$/, doing: 'data', words: 'loading a batch' },
  {
    file: /torch\/distributed\/(distributed_c10d|c10d_logger|rendezvous)\.py$/,
    doing: 'collective',
    words: 'waiting for the other ranks',
    isPlace: true,
  },
  { file: /torch\/distributed\/checkpoint\/|(^|\/)safetensors\//, doing: 'saving', words: 'in a checkpoint' },
  { file: /torch\/serialization\.py$/, function: /save/i, doing: 'saving', words: 'writing a checkpoint' },
  { file: /torch\/serialization\.py$/, doing: 'saving', words: 'reading a checkpoint' },
  {
    file: /./,
    function: /(^|\.|_)save_(checkpoint|pretrained|model|state)\b|(^|\.)_?save_checkpoint$/,
    doing: 'saving',
    words: 'writing a checkpoint',
  },
  { file: /torch\/(_dynamo|_inductor|_functorch|fx)\/|(^|\/)triton\//, doing: 'compiling', words: 'compiling' },
  {
    file: /torch\/cuda\/(__init__|streams|graphs)\.py$/,
    function: /synchronize|wait|query/,
    doing: 'other',
    words: 'waiting for the GPU',
    isPlace: true,
  },
  { file: /torch\/autograd\/(graph|__init__)\.py$/, doing: 'backward', words: 'in the backward pass' },
  { file: /(^|\/)(urllib3|requests|httpx|aiohttp|botocore|wandb|mlflow)\//, doing: 'other', words: 'waiting for the network' },
  { file: /(^|\/)http\/client\.py$|(^|\/)ssl\.py$/, doing: 'other', words: 'waiting for the network' },
  { file: /(^|\/)subprocess\.py$/, doing: 'other', words: 'waiting for a process' },
]

const CALLS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['read', 'pread64', 'readv'].map((name) => [name, 'reading'])),
  ...Object.fromEntries(['write', 'pwrite64', 'writev', 'fsync', 'fdatasync'].map((name) => [name, 'writing'])),
  ...Object.fromEntries(['sendto', 'sendmsg'].map((name) => [name, 'sending'])),
  ...Object.fromEntries(['recvfrom', 'recvmsg'].map((name) => [name, 'receiving'])),
  ...Object.fromEntries(
    ['poll', 'ppoll', 'select', 'pselect6', 'epoll_wait', 'epoll_pwait', 'accept'].map((name) => [name, 'waiting for a socket or a pipe']),
  ),
  ...Object.fromEntries(['nanosleep', 'clock_nanosleep'].map((name) => [name, 'sleeping'])),
  ...Object.fromEntries(['wait4', 'waitid'].map((name) => [name, 'waiting for a process'])),
  ...Object.fromEntries(['fcntl', 'flock'].map((name) => [name, 'waiting for a file lock'])),
  connect: 'connecting',
  futex: 'waiting for a lock',
  ioctl: 'in a call of a driver',
  open: 'opening a file',
  openat: 'opening a file',
}

/** Python's own library: where a thread waits, not why. */
const PLUMBING = /(^|\/)lib(64)?\/python3(\.\d+)?t?\/(?!site-packages|dist-packages)|^<frozen|(^|\/)lib\/python3?\d*\.zip\//
const INSTALLED = /\/(site|dist)-packages\//
/** Phases that the hooks measured. */
const PHASES: Readonly<Record<string, readonly [Doing, string]>> = {
  data: ['data', 'waiting for data'],
  checkpoint: ['saving', 'in a checkpoint'],
  sync: ['collective', 'waiting for the other ranks'],
}

export function mainThread({ threads }: RankStacks): ThreadStack | null {
  return threads.find(({ isMain }) => isMain) ?? null
}

export function placeOf(stacks: RankStacks): StackPlace {
  const thread = mainThread(stacks)
  const frames = thread?.frames ?? []
  const kernel = kernelWords(thread)
  const found = ruleOf(frames)
  const inner = frames.find(({ file }) => !PLUMBING.test(file)) ?? frames[0] ?? null
  const place = found?.rule.isPlace ? found.frame : inner
  const own = frames.find(({ file }) => !PLUMBING.test(file) && !INSTALLED.test(file) && !/(^|\/)torch\//.test(file)) ?? null
  const phase = found || stacks.phase === null ? undefined : PHASES[stacks.phase]
  return {
    place: place && frameText(place),
    own: own && own !== place ? frameText(own) : null,
    doing: found?.rule.doing ?? phase?.[0] ?? 'other',
    words: wordsOf(found?.rule, phase?.[1], kernel),
    op: found?.rule.doing === 'collective' ? opOf(frames) : null,
  }
}

/** `waiting for a worker`, `loading a batch (sleeping)`, `writing` */
function wordsOf(rule: Rule | undefined, phase: string | undefined, kernel: string | null): string | null {
  const words = rule?.words ?? phase
  if (words === undefined) return kernel
  return rule?.isPlace || kernel === null || kernel === 'running' ? words : `${words} (${kernel})`
}

/** `train.py:77` */
export function frameText({ file, line }: StackFrame): string {
  return `${file.split(/[\\/]/).at(-1)}:${line}`
}

/** What the kernel says of it; null: nothing that tells. */
export function kernelWords(thread: ThreadStack | null): string | null {
  if (thread === null) return null
  const where = thread.wchan === null ? '' : ` (${thread.wchan})`
  if (thread.state === 'D') return `stuck in the kernel${where}, as with a disk or a driver that does not answer`
  if (thread.state === 'T' || thread.state === 't') return 'stopped by a signal or a debugger'
  if (thread.state === 'Z') return 'ended, but not collected by its parent'
  if (thread.state === 'R') return 'running'
  return thread.syscall === null ? null : (CALLS[thread.syscall] ?? null)
}

function ruleOf(frames: readonly StackFrame[]): { rule: Rule; frame: StackFrame } | null {
  for (const frame of frames) {
    const rule = RULES.find((one) => one.file.test(frame.file) && (one.function?.test(frame.function) ?? true))
    if (rule) return { rule, frame }
  }
  return null
}

/** The outermost function of torch.distributed below the program: what it called. */
function opOf(frames: readonly StackFrame[]): string | null {
  const calls = frames.filter(({ file }) => /torch\/distributed\/distributed_c10d\.py$/.test(file))
  return calls.at(-1)?.function.split('.').at(-1) ?? null
}
