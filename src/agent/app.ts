import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { announceAgent } from '../core/agent-file.ts'
import { isHeldByDisk, logLane, STUCK_AT_END_MS } from '../core/disk-lane.ts'
import { VERSION } from '../core/version.ts'
import { EventCounts } from '../exporter/event-counts.ts'
import { CONTENT_TYPES, createExporter } from '../exporter/exporter.ts'
import { createPush } from '../push/push.ts'
import { replayRoutes } from '../server/replay-route.ts'
import { createServer, type GpuwardenServer } from '../server/server.ts'
import { METRIC_NAMING } from '../sources/vendors.ts'
import { createHistory } from '../store/history.ts'
import { refillHistory } from '../store/refill.ts'
import { createStore, type Store } from '../store/store.ts'
import { publicRun } from '../training/run-record.ts'
import { runProcesses } from '../training/silent-runs.ts'
import { spoolFolder } from '../training/step-spool.ts'
import { createTraining, type Training } from '../training/training.ts'
import { usageRoute } from '../usage/routes.ts'
import { createUsage } from '../usage/usage.ts'
import { type Alerting, alertsFolder, createAlerting } from './alerting.ts'
import type { Config } from './config.ts'
import { endDespiteDisk } from './end-despite-disk.ts'
import { EventLog } from './event-log.ts'
import { logFolder, unansweredNote } from './folders.ts'
import { type OpenLog, openLog } from './log.ts'
import { memorySessionRoutes } from './memory-session-routes.ts'
import { MemorySessions } from './memory-sessions.ts'
import { Replay } from './replay.ts'
import { type Opened, Sampling } from './sampling.ts'
import { SamplingPace } from './sampling-pace.ts'
import { createSnapshots, type Snapshots } from './snapshots.ts'
import { isShuttingDown, noteShutdown } from './system-state.ts'
import { createTiers, type Tiers } from './tiers.ts'
import { checkUsageMail, UsageMail } from './usage-mail.ts'
import { Watching } from './watching.ts'
import { createWebUi } from './web-ui.ts'

/** Cold cards take seconds to start; after this an alert says so. */
const SLOW_START_MS = 8000
/** Runs work that the agent must not do itself. */
const PROGRAM = fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url))

export interface AgentOptions {
  readonly config: Config
  readonly logToStderr: boolean
  /** See SamplingOptions. */
  readonly mayStandIn?: boolean
  readonly samplerEntry?: URL
  /** From `unansweredFolders`: not read, and written to once they answer. */
  readonly unanswered?: readonly string[]
}

export interface Started {
  readonly opened: Opened
  /** Of the API; null when the server is off. */
  readonly url: string | null
  readonly metricsUrl: string | null
  /** What differs from the configuration, for people. */
  readonly notes: readonly string[]
}

export class Agent {
  readonly sampling: Sampling
  readonly log: OpenLog
  readonly store: Store | null
  readonly #config: Config
  readonly #unanswered: readonly string[]
  readonly #server: GpuwardenServer | null
  readonly #watching: Watching
  readonly #alerting: Alerting
  readonly #training: Training
  readonly #usageMail: UsageMail | null
  readonly #replay: Replay | null
  readonly #snapshots: Snapshots | null
  readonly #tiers: Tiers | null
  readonly #abort = new AbortController()
  #refilled: Promise<unknown> = Promise.resolve()
  #port: number | null = null
  #retract: () => Promise<void> = async () => undefined
  #stopped: Promise<void> | null = null

  constructor({ config, logToStderr, mayStandIn = false, samplerEntry, unanswered = [] }: AgentOptions) {
    this.#config = config
    const { values } = config
    const runId = randomBytes(16).toString('hex')
    const logDir = logFolder(config)
    this.#unanswered = unanswered
    const answers = logDir === null || !unanswered.includes(logDir)
    this.log = openLog({
      dir: logDir,
      answers,
      level: values['log.level'],
      stderr: logToStderr || values['log.stderr'],
      maxBytes: values['log.max_mb'] * 1024 ** 2,
      runId,
    })
    const log = this.log.log
    this.sampling = new Sampling({
      values,
      log,
      runId,
      cardsFile: logDir === null || !answers ? null : join(logDir, 'gpus.json'),
      mayStandIn,
      slowStartMs: SLOW_START_MS,
      ...(samplerEntry ? { samplerEntry } : {}),
      onEnded: (source) => log.info({ source }, 'the recording has ended'),
    })
    const { hub, state, clock } = this.sampling
    const time = { now: () => clock.now(), sinceJumpMs: () => clock.sinceJumpMs() }
    const counts = new EventCounts()
    const history = createHistory(values)
    // What a wrong configuration can stop comes before what would need to be ended again.
    this.#watching = new Watching({ values, logDir: answers ? logDir : null, state, hub, log })
    const place = unanswered.includes(alertsFolder(values, logDir) ?? '')
      ? { values: { ...values, 'alerts.dir': null }, logDir: null }
      : { values, logDir }
    const runName = (run: string) => this.#training.recordOf(run)?.name ?? null
    this.#alerting = createAlerting({ ...place, state, history, detectors: this.#watching.running, log, runName })
    const { alerts } = this.#alerting
    checkUsageMail(values, [...Object.keys(values.channels), ...(alerts?.channels() ?? [])])
    hub.addSink(history)
    hub.addSink(counts)
    this.store = logDir === null ? null : createStore({ dir: logDir, settings: values, log: log.child({ room: 'store' }), ...time, runId })
    if (this.store && logDir !== null) {
      hub.addSink(this.store)
      const signal = this.#abort.signal
      this.#refilled = refillHistory(history, logDir, { now: Date.now(), hours: values['history.hours'], signal }).then(
        ({ faults, ...outcome }) => {
          if (faults.length > 0) log.warn({ ...outcome, faults: faults.slice(0, 10) }, 'some of the earlier log could not be read')
          else log.debug(outcome, 'history refilled from the log')
        },
      )
    }
    const { store } = this
    // A recording has its own time: what is played is not the past of this machine.
    const isPlayed = values.source.startsWith('replay:')
    this.#tiers =
      store && logDir !== null && values['history.records'] && !isPlayed
        ? createTiers({ logDir, values, store, memory: history, refilled: this.#refilled, log: log.child({ room: 'history' }), ...time })
        : null
    if (this.#tiers) hub.addSink(this.#tiers.sink)
    const recording = isPlayed ? values.source.slice('replay:'.length) : null
    this.#replay =
      recording === null
        ? null
        : new Replay({
            path: recording,
            values,
            isLogged: logDir !== null,
            steer: (command) => this.sampling.supervisor.steer('replay', command),
            log,
            signal: this.#abort.signal,
          })
    if (this.#replay) hub.addSink(this.#replay)
    this.#training = createTraining({
      hub,
      dir: logDir,
      log,
      ...time,
      settings: values,
      judge: this.#watching,
      gpuOf: (pid) => state.gpuOf(pid),
      spoolFolder: spoolFolder(process.env),
      ...(recording === null ? {} : { recording }),
      report: { program: PROGRAM, configFile: config.file },
      ...(store ? { flush: () => isWritten(store) } : {}),
    })
    hub.addSink({ name: 'runs', accept: (event) => this.#training.accept(event) })
    if (this.#training.played) hub.addSink(this.#training.played)
    const { supervisor } = this.sampling
    hub.addSink({
      name: 'processes of runs',
      accept: ({ type }) => type === 'run' && supervisor.watchRuns(runProcesses(this.#training.runs().map(({ run }) => run))),
    })
    const pace = new SamplingPace({ ownMs: values.interval * 1000, set: (intervalMs) => supervisor.pace(intervalMs) })
    const memory = new MemorySessions({ state, pace, runs: () => this.#training.runs().map(({ run }) => publicRun(run)) })
    hub.addSink(memory)
    hub.addSink({ name: 'requests', accept: (event) => event.type === 'finding' && this.#training.noteFinding(event.finding) })
    hub.addSink(new EventLog({ log, correlationOf: (run) => this.#training.recordOf(run)?.correlationId ?? null }))
    // A recording was counted when it was made.
    const usage =
      values['usage.enabled'] && recording === null
        ? createUsage({
            ...{ dir: logDir === null ? null : join(logDir, 'usage'), settings: values, log: log.child({ room: 'usage' }), ...time },
            intervalMs: values.interval * 1000,
          })
        : null
    if (usage) hub.addSink(usage)
    this.#usageMail =
      usage && alerts && values['usage.mail'] !== 'off'
        ? new UsageMail({ values, usage, alerts, host: state.hostname, log, now: Date.now })
        : null
    const exporter = createExporter({
      state,
      sets: values['metrics.sets'],
      naming: METRIC_NAMING,
      maxProcesses: values['metrics.max_processes'],
      training: counts.training,
      xids: counts.xids,
      timeOf: (run) => this.#training.timeOf(run),
      unfollowedRuns: () => this.#watching.health().runsNotFollowed,
      ...(alerts ? { alerts: () => alerts.health() } : {}),
      ...(usage ? { usage: () => usage.totals() } : {}),
    })
    const webUi = values['server.enabled']
      ? createWebUi({ config, logDir, state, log, port: () => this.#port, signal: this.#abort.signal })
      : null
    for (const sink of webUi?.sinks ?? []) hub.addSink(sink)
    if (webUi) this.#refilled = Promise.allSettled([this.#refilled, webUi.refilled])
    const push = createPush({
      state,
      settings: values,
      families: () => exporter.families(),
      log: log.child({ room: 'push' }),
      version: VERSION,
    })
    for (const sink of push) hub.addSink(sink)
    const runs = async () => {
      // A disk that does not answer keeps nobody from looking at an upload.
      await this.#training.open().catch(() => undefined)
      return this.#training.runs().map(({ run }) => run)
    }
    this.#snapshots = webUi ? createSnapshots({ mostUploadBytes: values['server.max_upload_mb'] * 1024 ** 2, runs, log }) : null
    this.#server = webUi
      ? createServer({
          state,
          history: this.#tiers?.history ?? history,
          metrics: { render: (format) => exporter.render(format), contentType: (format) => CONTENT_TYPES[format] },
          settings: values,
          log,
          version: VERSION,
          extraHealth: () => ({
            store: this.store?.health() ?? null,
            history: this.#tiers?.health() ?? null,
            alerts: alerts?.health() ?? null,
            training: this.#training.health(),
            detectors: this.#watching.health(),
          }),
          routes: [
            ...memorySessionRoutes(memory, pace),
            ...this.#alerting.routes,
            ...this.#training.routes,
            ...webUi.routes,
            usageRoute(usage, Date.now),
            ...(this.#snapshots?.routes ?? []),
            ...(this.#replay ? replayRoutes(this.#replay) : []),
          ],
          processControl: webUi.processControl,
          alertNews: alerts?.news ?? null,
          ...(webUi.assets ? { assets: webUi.assets } : {}),
        })
      : null
    if (this.#server) hub.addSink(this.#server.sink, { skipsJumps: true })
    if (alerts) hub.addSink(alerts)
    // Last, so that every sink has seen a sample before the findings from it.
    hub.addSink(this.#watching)
  }

  /** Listens first, so that a taken port is known before any driver is touched, then opens the GPUs. */
  async start(): Promise<Started> {
    const { values, warnings, file } = this.#config
    const log = this.log.log
    log.info(
      { version: VERSION, node: process.versions.node, config: file, interval: values.interval, source: values.source },
      'gpuwarden starts',
    )
    const problems = [...this.#unanswered.map(unansweredNote), ...this.#alerting.problems]
    for (const warning of [...warnings, ...problems]) log.warn({}, warning)
    try {
      const address = this.#server ? await this.#server.listen() : null
      this.#port = address?.port ?? null
      const url = address?.url ?? null
      if (url !== null) await this.#announce(url)
      const port = values['server.prometheus_port']
      const metricsUrl = this.#server && port !== null ? `${(await this.#server.metricsListen(port)).url}/metrics` : null
      this.#watching.resume()
      // Its routes wait for it, and try again when it failed: the GPUs need not, unless the runs of a recording are to be played with it.
      const hasRuns = this.#training
        .open()
        .then(() => this.#training.closeSilentRuns())
        .catch((error: unknown) => log.error({ err: error }, 'earlier runs cannot be read; trying again'))
      if (this.#replay) await hasRuns
      const opened = await this.sampling.open()
      void this.#replay?.readAhead()
      for (const { source, result, fault, message } of opened.openings) {
        // Of one that does not respond, the supervisor says whether it is waited for or replaced.
        if (fault === 'not_responding') continue
        if (result === 'failed') log.error({ source }, `${message ?? 'cannot be opened'}; trying again`)
        else log.info({ source, result }, `source ${source}: ${result}`)
      }
      if (opened.simulatedInstead) log.warn({}, 'no GPU was found: showing SIMULATED GPUs')
      const missing = opened.missing.map((index) => `there is no GPU ${index}, which was requested`)
      const none = opened.openings.every(({ result }) => result === 'absent')
        ? ['no GPU was found: runs and the host are watched, and a GPU that comes later is picked up']
        : []
      const notes = [...missing, ...none, ...opened.notes]
      for (const one of notes) log.warn({}, one)
      log.info({ url, metricsUrl, gpus: this.sampling.state.devices().length }, 'gpuwarden is watching')
      return { opened, url, metricsUrl, notes: [...problems, ...notes] }
    } catch (error) {
      await this.stop('could not start')
      throw error
    }
  }

  /** Ends everything in the order of the data: sources, then what they feed; each part has its own time limit. */
  stop(reason: string): Promise<void> {
    this.#stopped ??= this.#stop(reason)
    return this.#stopped
  }

  /** Lets programs on this machine verify the agent before they send it the token. */
  async #announce(url: string): Promise<void> {
    try {
      this.#retract = await announceAgent(Number(new URL(url).port || 80))
    } catch (error) {
      this.log.log.info({ err: error }, 'programs on this machine cannot verify the agent; they must name its address')
    }
  }

  async #stop(reason: string): Promise<void> {
    this.#abort.abort()
    await this.#retract().catch((error: unknown) =>
      this.log.log.info({ err: error }, 'cannot remove the file that says where the agent is'),
    )
    if (reason === 'SIGTERM' && (await isShuttingDown())) noteShutdown(this.sampling.hub, this.log.log)
    this.#usageMail?.close()
    await this.sampling.stop()
    await this.#training.close()
    await this.sampling.hub.close()
    await this.#server?.close()
    await this.#snapshots?.close()
    this.#tiers?.close()
    await logLane.patiently(() => this.#refilled, STUCK_AT_END_MS).catch(() => undefined)
    this.log.log.info({ reason }, 'gpuwarden stops')
    const lost = await this.log.close()
    if (isHeldByDisk())
      endDespiteDisk({ dir: this.#config.values['log.dir'], storeLines: this.store?.health().pendingLines ?? 0, logLines: lost })
  }
}

/** Whether everything given to the store is in its files. */
async function isWritten(store: Store): Promise<boolean> {
  await store.flush()
  return store.health().state === 'ok'
}
