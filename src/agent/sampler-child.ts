/** Entry of the sampler process, the only one that loads native code. It ends when the agent says so, or is gone. */
import { performance } from 'node:perf_hooks'
import { resourceUsage } from 'node:process'
import type { RunProcessRef, SourceEnv } from '../core/source-contract.ts'
import { TickClock } from '../sampler/clock.ts'
import type { FromSampler, ProcessUsage, StartMessage, ToSampler } from '../sampler/messages.ts'
import { type Beat, Metronome } from '../sampler/metronome.ts'
import { SourceRunner } from '../sampler/runner.ts'
import { faultOfSource } from '../sources/driver-fault.ts'
import { loadSource } from '../sources/index.ts'

const runners = new Map<string, SourceRunner>()
const metronome = new Metronome()
let start: StartMessage | null = null
let watched: readonly number[] = []
let watchedRuns: readonly RunProcessRef[] = []
let opened = 0
/** Sources that are to be opened and are not yet. */
let pending = 0

const COST_EVERY_BEATS = 5
const originMs = performance.now()

let isSilent = true
let isCostDue = true

function nothing(): void {
  return
}

function usage(): ProcessUsage {
  const { userCPUTime, systemCPUTime } = resourceUsage()
  return { cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, residentBytes: process.memoryUsage.rss() }
}

/** `sent` is called when the message is on its way, or nobody is there to hear it. */
function send(message: FromSampler, sent: () => void = nothing): void {
  isSilent = false
  if (!process.connected) {
    sent()
    return
  }
  if (isCostDue && message.type === 'tick') {
    isCostDue = false
    process.send?.({ ...message, usage: usage() }, sent)
  } else process.send?.(message, sent)
}

function say(message: FromSampler): Promise<void> {
  return new Promise((resolve) => send(message, resolve))
}

/** Samples show life as well, and carry now and then what the process costs: only a silence is filled. */
class Pulse implements Beat {
  readonly source = null
  readonly #clock: TickClock
  dueMs: number
  #beats = 0

  constructor(everyMs: number) {
    this.dueMs = performance.now()
    this.#clock = new TickClock(everyMs, this.dueMs, originMs)
  }

  run(): boolean {
    if (isSilent) send({ type: 'beat', usage: usage() })
    isSilent = true
    if (++this.#beats % COST_EVERY_BEATS === 0) isCostDue = true
    const nowMs = performance.now()
    this.dueMs = nowMs + this.#clock.advance(nowMs)
    return false
  }
}

async function open(name: string): Promise<void> {
  if (start === null) throw new Error('the sampler got an "open" message before "start"')
  send({ type: 'begin', source: name })
  try {
    const kind = await loadSource(name)
    const intervalMs = Math.max(start.intervalMs, kind.minIntervalMs ?? 0)
    const env: SourceEnv = {
      root: start.root,
      env: process.env,
      intervalMs,
      options: start.options,
      log: (level, message, detail = {}) => send({ type: 'log', level, source: name, message, detail }),
      now: Date.now,
    }
    const source = await kind.open(env)
    if (source === null) {
      const fault = faultOfSource(name, null, start.root)
      if (fault !== null) throw fault
      await say({ type: 'absent', source: name })
      return
    }
    await say({ type: 'opened', source: name, provenance: source.provenance, intervalMs, devices: source.devices() })
    const isFirst = opened === 0
    const runner = new SourceRunner({
      name,
      source,
      intervalMs,
      minIntervalMs: kind.minIntervalMs ?? 0,
      originMs,
      announce: () => !isFirst || pending > 0,
      metronome,
      send,
      onGone: () => runners.delete(name),
    })
    opened++
    runners.set(name, runner)
    if (watched.length + watchedRuns.length > 0) runner.watch(watched, watchedRuns)
  } catch (error) {
    const { kind, message } = faultOfSource(name, error, start.root)
    await say({ type: 'failed', source: name, kind, message })
  }
}

async function stop(): Promise<void> {
  await Promise.allSettled([...runners.values()].map((runner) => runner.close()))
  process.exit(0)
}

/** Opening is one at a time: two drivers starting at once would hide which of them hangs. */
let opening: Promise<void> = Promise.resolve()

process.on('message', (message: ToSampler) => {
  switch (message.type) {
    case 'start':
      start = message
      metronome.add(new Pulse(message.beatMs))
      break
    case 'open':
      pending++
      opening = opening.then(() => open(message.source)).finally(() => pending--)
      break
    case 'close':
      void runners.get(message.source)?.close()
      runners.delete(message.source)
      break
    case 'watch':
      watched = message.pids
      watchedRuns = message.runs
      for (const runner of runners.values()) runner.watch(watched, watchedRuns)
      break
    case 'pace':
      if (start !== null) start = { ...start, intervalMs: message.intervalMs }
      for (const runner of runners.values()) runner.pace(message.intervalMs)
      break
    case 'playback':
      runners.get(message.source)?.steer(message.command)
      break
    case 'stop':
      void stop()
      break
  }
})
// Not by exit(), which waits for calls to a disk that may never answer; nobody is left to see how this ends.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// A Ctrl-C in the terminal reaches the whole process group; the agent ends the sampler when it has flushed.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
