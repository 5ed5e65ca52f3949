/**
 * Entry of the sampler process: the only one that loads native code. It may hang or crash; the agent replaces it.
 * It never decides when to end: it does so when told, or when the agent is gone.
 */
import { performance } from 'node:perf_hooks'
import { resourceUsage } from 'node:process'
import type { SourceEnv } from '../kinds.ts'
import { loadSource } from '../sources/index.ts'
import type { FromSampler, StartMessage, ToSampler } from './messages.ts'
import { SourceRunner } from './runner.ts'

const runners = new Map<string, SourceRunner>()
let start: StartMessage | null = null
let watched: readonly number[] = []
let opened = 0
let beats = 0

const COST_EVERY_BEATS = 5
const originMs = performance.now()

let isSilent = true

function send(message: FromSampler): Promise<void> {
  isSilent = false
  return new Promise((resolve) => {
    if (!process.connected) resolve()
    else process.send?.(message, () => resolve())
  })
}

/** Samples show life as well: only a silence is filled, and the process's own cost told now and then. */
function beat(): void {
  if (!isSilent && ++beats % COST_EVERY_BEATS !== 0) {
    isSilent = true
    return
  }
  const { userCPUTime, systemCPUTime } = resourceUsage()
  void send({ type: 'beat', cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, residentBytes: process.memoryUsage.rss() })
  isSilent = true
}

async function open(name: string): Promise<void> {
  if (start === null) throw new Error('the sampler was told to open a source before it was started')
  void send({ type: 'begin', source: name })
  try {
    const kind = await loadSource(name)
    const intervalMs = Math.max(start.intervalMs, kind.minIntervalMs ?? 0)
    const env: SourceEnv = {
      root: start.root,
      env: process.env,
      intervalMs,
      options: start.options,
      log: (level, message, detail = {}) => void send({ type: 'log', level, source: name, message, detail }),
      now: Date.now,
    }
    const source = await kind.open(env)
    if (source === null) {
      await send({ type: 'absent', source: name })
      return
    }
    await send({ type: 'opened', source: name, provenance: source.provenance, intervalMs, devices: source.devices() })
    const runner = new SourceRunner({ name, source, intervalMs, originMs, announce: opened > 0, send, onGone: () => runners.delete(name) })
    opened++
    runners.set(name, runner)
    if (watched.length > 0) runner.watch(watched)
  } catch (error) {
    await send({ type: 'failed', source: name, message: error instanceof Error ? error.message : String(error) })
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
      setInterval(beat, message.beatMs)
      beat()
      break
    case 'open':
      opening = opening.then(() => open(message.source))
      break
    case 'watch':
      watched = message.pids
      for (const runner of runners.values()) runner.watch(watched)
      break
    case 'stop':
      void stop()
      break
  }
})
process.on('disconnect', () => process.exit(0))
// A Ctrl-C in the terminal reaches the whole process group; the agent ends the sampler when it has flushed.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
