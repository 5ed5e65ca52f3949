import { Agent, type Started } from '../agent/app.ts'
import type { Config } from '../agent/config.ts'
import { unansweredFolders } from '../agent/folders.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { formatClock } from '../core/format.ts'
import { VERSION } from '../core/version.ts'
import { findingLine } from './finding-ndjson.ts'
import { LiveLines } from './live-lines.ts'
import { writeOut } from './output.ts'

const SHORTEST_REDRAW_MS = 500
const SUMMARY_EVERY_MS = 60_000

export async function monitor(config: Config, options: Record<string, unknown>): Promise<number> {
  const durationMs = readDuration(options.duration)
  const isQuiet = options.quiet === true
  const isJson = options.json === true
  const isTerminal = process.stdout.isTTY === true && !isQuiet && !isJson
  const agent = new Agent({
    config,
    logToStderr: !isTerminal && !isQuiet,
    // A service watches what is there, even when somebody starts it at a terminal.
    mayStandIn: options.isService !== true && (isTerminal || options.orDemo === true),
    unanswered: await unansweredFolders(config),
  })
  // Before start(): a Ctrl-C while a cold driver opens must end as cleanly as a later one.
  const ended = waitForEnd(durationMs)
  if (isJson) printFindings(agent)
  const started = await agent.start()
  const stopShowing = isTerminal ? showLive(agent, started, config) : isQuiet ? () => undefined : logSummaries(agent)
  const reason = await ended
  stopShowing()
  await agent.stop(reason)
  if (isTerminal) process.stdout.write(`Stopped (${reason}).${agent.store ? ` Logs: ${config.values['log.dir']}` : ''}\n`)
  return EXIT.ok
}

/** Findings as they come and end, one JSON object a line. */
function printFindings(agent: Agent): void {
  agent.sampling.hub.addSink({
    name: 'json',
    accept: (event) => {
      if (event.type === 'finding') writeOut(`${findingLine(event.finding)}\n`)
    },
  })
}

function readDuration(given: unknown): number {
  const seconds = given === undefined ? 0 : Number(given)
  if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1000
  throw new Failure(`--duration: expected seconds, 0 or more; got ${JSON.stringify(given)}`, { exitCode: EXIT.usage })
}

function waitForEnd(durationMs: number): Promise<string> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve('Ctrl-C'))
    process.once('SIGTERM', () => resolve('SIGTERM'))
    process.once('SIGHUP', () => resolve('the terminal was closed'))
    if (durationMs > 0) setTimeout(() => resolve('--duration is over'), durationMs)
  })
}

function showLive(agent: Agent, { url, metricsUrl, opened, notes }: Started, config: Config): () => void {
  const out = process.stdout
  const lines = [
    `gpuwarden ${VERSION}${url === null ? '' : `  web UI and API ${url}`}${metricsUrl === null ? '' : `  metrics ${metricsUrl}`}  logs ${config.values['log.dir']}`,
  ]
  if (opened.simulatedInstead) lines.push('No GPU was found: these are SIMULATED GPUs ("gpuwarden doctor" says what was looked for).')
  for (const note of [...config.warnings, ...notes]) lines.push(`note: ${note}`)
  out.write(`${lines.join('\n')}\nCtrl-C ends.\n`)
  const redrawMs = Math.max(SHORTEST_REDRAW_MS, config.values.interval * 1000)
  const live = new LiveLines(agent.sampling.state, out, redrawMs, () => logFaults(agent))
  // The first sample is wanted on the screen at once, not at the next redraw.
  agent.sampling.hub.addSink({
    name: 'screen',
    accept: drawOnce(live),
  })
  live.draw()
  return () => live.stop()
}

/** gpu_monitor.log may be on the very disk that cannot be written, so the screen has to say it. */
function logFaults({ store }: Agent): string[] {
  const health = store?.health()
  return health?.state === 'degraded' ? [`log not written since ${formatClock(health.since, Date.now())}: ${health.reason}`] : []
}

function drawOnce(live: LiveLines): (event: { type: string }) => void {
  let isDrawn = false
  return (event) => {
    if (isDrawn || event.type !== 'tick') return
    isDrawn = true
    live.draw()
  }
}

function logSummaries(agent: Agent): () => void {
  const timer = setInterval(() => {
    for (const { info, sample, live } of agent.sampling.state.gpus())
      agent.log.log.info(
        {
          gpu: info.label,
          live,
          state: sample?.state ?? null,
          utilization_percent: sample?.utilizationRatio == null ? null : Math.round(sample.utilizationRatio * 100),
          memory_used_mb: sample?.memoryUsedBytes == null ? null : Math.round(sample.memoryUsedBytes / 1024 ** 2),
          temperature_celsius: sample?.temperatureCelsius ?? null,
        },
        'sample',
      )
  }, SUMMARY_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
