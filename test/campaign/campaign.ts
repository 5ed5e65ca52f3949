/** One campaign: sets up the world, plays the schedule, waits until everything must have arrived, and has it audited. */
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildFakeNvml, fakeNvmlScript } from '../fake-nvml/index.ts'
import { temporaryFolder } from '../program.ts'
import { mountSmallDisk, unmountSmallDisk } from '../small-disk.ts'
import { AgentLives } from './agent-lives.ts'
import { Ailments } from './ailments.ts'
import { type Audit, audit } from './auditor.ts'
import { firingAlerts, gatherFromAgent, gatherFromDisk } from './evidence.ts'
import { Faults } from './faults.ts'
import { Gate } from './gate.ts'
import { emptyLedger, type Ledger } from './ledger.ts'
import { Players } from './players.ts'
import { openMailReceiver, openWebhook } from './receivers.ts'
import { FAULTY_GPUS, HOT_GPUS, type Schedule } from './schedule.ts'

const DISK_MB = 192
const FAKETIME = ['/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1', '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1']
/** How long everything may take to arrive after the last fault: pauses between attempts grow, and a killed run is noticed after a minute. */
const DRAIN_LIMIT_MS = 240_000
const REPORTS = 5

export interface CampaignResult extends Audit {
  readonly counts: ReadonlyMap<string, number>
  readonly skipped: readonly string[]
  readonly lastWords: readonly string[]
  /** Kept when something is wrong. */
  readonly folder: string
}

export async function runCampaign(schedule: Schedule, say: (line: string) => void): Promise<CampaignResult> {
  const folder = temporaryFolder()
  const smallDisk = mountSmallDisk(DISK_MB)
  const library = FAKETIME.find((path) => existsSync(path)) ?? null
  const skipped = [
    ...(smallDisk === null ? ['full disk: mounting needs root'] : []),
    ...(library === null ? ['clock jump: install libfaketime'] : []),
  ]
  for (const one of skipped) say(`SKIPPED ${one}`)
  const ledger = emptyLedger()
  const gate = await Gate.open(ledger.acknowledged)
  const messages: { heard: () => void } = { heard: () => undefined }
  const webhook = await openWebhook(ledger.receipts, () => messages.heard())
  const mail = await openMailReceiver(ledger.receipts, () => messages.heard())
  const nvml = fakeNvmlScript({ gpus: HOT_GPUS + FAULTY_GPUS, temp: 50, mem_temp: 50, memory_used: 40_000_000_000, util: 90 })
  const clockFile = library === null ? null : join(folder, 'clock')
  if (clockFile !== null) writeFileSync(clockFile, '+0')
  const logDir = join(smallDisk ?? folder, 'logs')
  const config = join(folder, 'config.json')
  writeFileSync(config, JSON.stringify(configOf(webhook.port, mail.port)))
  const env = {
    ...{ GPUWARDEN_NVML: buildFakeNvml(), ...nvml.env },
    ...(clockFile === null || library === null ? {} : clockEnv(library, clockFile)),
  }
  const agent = new AgentLives({ args: ['--config', config, '--source', 'nvidia'], env, logDir }, ledger, gate)
  messages.heard = () => agent.onMessage?.()
  const spool = join(folder, 'spool')
  mkdirSync(spool)
  const players = new Players(ledger.played, gate.url, spool)
  const ailments = new Ailments(ledger, nvml)
  const faults = new Faults({ agent, gate, webhook, mail, smallDisk, clockFile, ledger })
  const watch = setInterval(() => void look(agent, ledger), 400)
  const abandon = () => {
    agent.abandon()
    players.kill()
    if (smallDisk !== null) unmountSmallDisk(smallDisk)
  }
  process.once('exit', abandon)
  let isRight = false
  try {
    await agent.start()
    if (agent.url === null) throw new Error(`the agent did not start: ${agent.lastWords.join('\n')}`)
    await play(schedule, { faults, players, ailments }, say)
    say('all faults are over; waiting until everything has arrived')
    await faults.end()
    await drain(agent, players, ailments, ledger, spool)
    if (agent.url !== null) await gatherFromAgent(ledger, agent.url)
    await agent.stop()
    await gatherFromDisk(ledger, logDir, spool, REPORTS)
    const { faults: found, figures } = audit(ledger)
    isRight = found.every(({ isExcused }) => isExcused)
    if (!isRight) keep(ledger, folder)
    const more = { 'sampler kills': agent.samplerKills }
    return { faults: found, figures: { ...more, ...figures }, counts: faults.counts, skipped, lastWords: agent.lastWords, folder }
  } finally {
    process.off('exit', abandon)
    clearInterval(watch)
    players.kill()
    await agent.stop()
    await Promise.all([gate.close(), webhook.close(), mail.close()])
    nvml.remove()
    if (!isRight) saveLogs(logDir, folder)
    if (smallDisk !== null) unmountSmallDisk(smallDisk)
    if (isRight) rmSync(folder, { recursive: true, force: true })
  }
}

function configOf(webhookPort: number, mailPort: number): object {
  return {
    slow_interval: 1,
    email: { server: '127.0.0.1', port: mailPort, from: 'gpu@example.org', to: ['ops@example.org'] },
    channels: { hook: { type: 'webhook', url: `http://127.0.0.1:${webhookPort}/hook` } },
    // No limits and short waits: what is tested is that nothing is lost or doubled.
    alerts: { group_seconds: 1, keep_firing_seconds: 4, messages_per_hour: 36_000, burst: 1000, repeat_hours: 8760 },
    log: { rotate_mb: 4, batch_seconds: 1, keep_total_mb: 0, level: 'info' },
    training: { max_runs: 10_000, checkpoint_seconds: 2 },
    // Steps that wait for the network look like a run that stands still.
    detectors: { disabled: ['stall', 'straggler', 'loss_plateau'] },
  }
}

/** The wall clock alone: a jump of the system's clock leaves the monotonic one as it is. */
function clockEnv(library: string, file: string): NodeJS.ProcessEnv {
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  }
}

async function look(agent: AgentLives, ledger: Ledger): Promise<void> {
  if (agent.url === null) return
  const alerts = await firingAlerts(agent.url).catch(() => [])
  for (const { fingerprint, finding } of alerts)
    if (finding.severity !== 'info' && !ledger.shown.has(fingerprint)) ledger.shown.set(fingerprint, Date.now())
  const firing = new Set(alerts.map(({ fingerprint }) => fingerprint))
  for (const one of ledger.ailing) if (one.firingAt === null && firing.has(one.fingerprint)) one.firingAt = Date.now()
}

async function play(
  { faults: planned, plays, ailments: sick, durationMs }: Schedule,
  { faults, players, ailments }: { faults: Faults; players: Players; ailments: Ailments },
  say: (line: string) => void,
): Promise<void> {
  const work: Promise<void>[] = []
  const events = [
    ...planned.map((fault) => ({ at: fault.at, begin: () => faults.carryOut(fault) })),
    ...plays.map((one) => ({ at: one.at, begin: async () => players.play(one) })),
    ...sick.map((one) => ({ at: one.at, begin: () => ailments.suffer(one) })),
  ].sort((a, b) => a.at - b.at)
  const startedAt = performance.now()
  let saidMinutes = 0
  for (const { at, begin } of events) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - (performance.now() - startedAt))))
    work.push(begin())
    const minutes = Math.floor(at / 60_000)
    if (minutes > saidMinutes) say(`${minutes} of ${Math.round(durationMs / 60_000)} min`)
    saidMinutes = Math.max(saidMinutes, minutes)
  }
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, durationMs - (performance.now() - startedAt))))
  // A long ailment may still wait for somebody to notice it, which the drain waits for.
  void Promise.all(work)
}

async function drain(agent: AgentLives, players: Players, ailments: Ailments, ledger: Ledger, spool: string): Promise<void> {
  const deadline = Date.now() + DRAIN_LIMIT_MS
  await agent.start()
  await players.allEnded()
  do await players.collect(4)
  while (readdirSync(spool).length > 0 && Date.now() < deadline)
  await ailments.allOver(deadline)
  while (Date.now() < deadline) {
    if (agent.url !== null) await gatherFromAgent(ledger, agent.url).catch(() => undefined)
    const { faults } = audit({ ...ledger, stored: ledger.acknowledged })
    if (!faults.some(({ kind }) => kind === 'alert lost' || kind === 'never resolved')) break
    ledger.firing.clear()
    await new Promise((resolve) => setTimeout(resolve, 2000))
  }
  // One more moment for what should not come.
  await new Promise((resolve) => setTimeout(resolve, 5000))
}

function keep(ledger: Ledger, folder: string): void {
  const plain = (_: string, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value)
  const { stored: _, acknowledged: __, ...rest } = ledger
  writeFileSync(join(folder, 'ledger.json'), JSON.stringify(rest, plain, 1))
}

function saveLogs(logDir: string, folder: string): void {
  if (existsSync(logDir) && !logDir.startsWith(folder)) cpSync(logDir, join(folder, 'logs'), { recursive: true })
}
