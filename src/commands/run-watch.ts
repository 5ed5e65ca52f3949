/** What `gpuwarden run` knows of its command: reports the run to the agent, follows it, and sums it up. */
import { numberOf } from '../core/json-text.ts'
import { readOomReport } from '../core/memory/oom-report.ts'
import type { Finding, GpuSample } from '../core/model.ts'
import { startTicksOf } from '../core/process-identity.ts'
import { GpuUse } from '../report/training-gpu-use.ts'
import type { SummaryRank } from '../report/training-ranks.ts'
import type { ReportRun } from '../report/training-report.ts'
import { type Summary, type SummaryFinding, type SummaryGpu, type SummaryTraining, summarize } from '../report/training-summary.ts'
import { isAcknowledged } from '../training/acknowledgement.ts'
import type { RankRow } from '../training/rank-progress.ts'
import { type FollowedGpu, RunFollower } from '../training/run-follow.ts'
import { endsInNan, type Outcome } from '../training/run-record.ts'
import { StepSpool, spoolFolder } from '../training/step-spool.ts'
import type { Watcher } from './run-agent.ts'
import type { Ending } from './run-command.ts'

export interface AnnouncedRun {
  readonly id: string
  readonly name: string
  readonly pid: number
  readonly started_at: number
  readonly [more: string]: unknown
}

type AnsweredRank = Pick<RankRow, 'rank' | 'steps' | 'lastStep' | 'meanStepSeconds' | 'phaseShares'>

/** The agent's answer for a run, as far as it is used here. */
interface RunAnswer extends ReportRun {
  readonly logDir: string | null
  readonly training: Readonly<Record<string, unknown>>
  readonly ranks: readonly AnsweredRank[]
}

export interface Finished {
  readonly summary: Summary
  /** null: the agent knows nothing of the run any more. */
  readonly record: RunAnswer | null
}

/** What was read of the command's output. */
interface Printed {
  readonly sawOutOfMemory: boolean
  /** 0: none was printed, or the command reports them itself. */
  readonly stepsTaken: number
}

interface End {
  readonly outcome: Outcome
  readonly message: string | null
  readonly ended_at: number
}

/** So long until the agent has read in the kernel log who killed it. */
const KERNEL_LOG_MS = 1200

export class RunWatch {
  readonly #watcher: Watcher
  readonly #run: AnnouncedRun
  readonly #uses = new Map<string, GpuUse>()
  readonly #follower: RunFollower
  readonly #announced: Promise<unknown>

  constructor(watcher: Watcher, run: AnnouncedRun, everyMs: number) {
    this.#watcher = watcher
    this.#run = run
    const { link, agent } = watcher
    this.#announced = link.tryPost('/api/v1/runs', run)
    this.#follower = new RunFollower({
      link,
      pid: run.pid,
      everyMs,
      onSample: (sample) => this.#take(sample),
      onGpus: (gpus) => void this.#announced.then(() => link.tryPost('/api/v1/runs', { ...run, gpus })),
    })
    // Our own agent can be listened to: nothing that came and went between two looks is missed.
    agent?.sampling.hub.addSink({
      name: 'run',
      accept: (event) => {
        if (event.type === 'finding' && event.finding.state === 'active') this.#follower.takeFinding(event.finding)
      },
    })
  }

  async finish(ending: Ending, printed: Printed, price: number | null): Promise<Finished> {
    const { link } = this.#watcher
    await this.#announced
    await this.#follower.stop()
    const path = `/api/v1/runs/${this.#run.id}`
    const before = (await link.tryGet(path)).body as RunAnswer | null | undefined
    const { loss, gradientNorm } = before?.training ?? {}
    const isNan = endsInNan({ loss: numberOf(loss), gradientNorm: numberOf(gradientNorm) })
    const end: End = { outcome: outcomeOf(ending, printed.sawOutOfMemory, isNan), message: messageOf(ending), ended_at: ending.at }
    const notes = await this.#tell(path, end)
    if (ending.signal === 'SIGKILL') await new Promise((resolve) => setTimeout(resolve, KERNEL_LOG_MS))
    await this.#follower.takeFindings()
    const answer = await link.tryGet(path)
    const known = answer.status === 200 ? (answer.body as RunAnswer) : null
    const stacks = known?.hang ? ((await link.tryGet(`${path}/stacks`)).body as { ranks?: ReportRun['stacks'] } | null)?.ranks : undefined
    const record = known && { ...known, stacks: stacks ?? [] }
    return { summary: this.#summary(ending, record, end, price, notes, printed.stepsTaken), record }
  }

  /** What the summary must say when the agent could not be reached. */
  async #tell(path: string, end: End): Promise<string[]> {
    const { link } = this.#watcher
    let told = await link.tryPost(`${path}/end`, end, 10_000)
    if (told.status === 404) {
      // Another agent is there now than at the start.
      await link.tryPost('/api/v1/runs', this.#run)
      told = await link.tryPost(`${path}/end`, end, 10_000)
    }
    if (isAcknowledged(told, this.#run.id)) return []
    const head = { run: this.#run, url: link.url, format: 1, process: { pid: process.pid, start: startTicksOf(process.pid) ?? 0 } }
    const spool = new StepSpool(spoolFolder(process.env), `${this.#run.id}.run.${process.pid}`, head)
    const { reason } = spool.append([JSON.stringify({ end })])
    spool.close()
    return [
      `The agent at ${link.url} stopped answering (${told.message}): figures of the GPUs end there, and reported steps are not known here.`,
      reason === null
        ? `How the run ended is kept in ${spool.path}; gpuwarden import delivers it.`
        : `How the run ended is not kept: ${reason}`,
    ]
  }

  #take(sample: GpuSample): void {
    let use = this.#uses.get(sample.gpu)
    if (!use) {
      use = new GpuUse()
      this.#uses.set(sample.gpu, use)
    }
    use.accept(sample.at, sample)
  }

  #summary(ending: Ending, record: RunAnswer | null, end: End, price: number | null, notes: string[], stepsTaken: number): Summary {
    const shown = this.#shownGpus(notes)
    const gpuIndices = new Set(shown.map(({ info }) => info.index))
    const seconds = (ending.at - this.#run.started_at) / 1000
    const figures = record?.training ?? {}
    // Every rank counts the same steps.
    const [leader] = [...(record?.ranks ?? [])].sort((a, b) => a.rank - b.rank)
    const steps = leader === undefined ? 0 : Math.max(leader.steps, stepsTaken)
    return summarize(
      {
        title: this.#run.name,
        runId: this.#run.id,
        outcome: record?.outcome ?? end.outcome,
        message: record ? record.message : end.message,
        outOfMemory: readOomReport(record?.report),
        leaks: record?.leakLines ?? [],
        hang: record?.hang ?? null,
        stacks: record?.stacks ?? [],
        hyperparameters: record?.hyperparameters ?? {},
        layers: null,
        runs: [],
        from: this.#run.started_at,
        to: ending.at,
        gpus: shown.map((gpu) => this.#summaryGpu(gpu)),
        isOfAllGpus: !shown.some(({ isOwn }) => isOwn),
        training:
          steps === 0
            ? null
            : {
                steps,
                lastStep: numberOf(figures.lastStep),
                loss: numberOf(figures.loss),
                bestLoss: numberOf(figures.bestLoss),
                stepsPerSecond: seconds > 0 ? steps / seconds : null,
                throughputPerSecond: numberOf(figures.meanThroughputPerSecond),
                meanStepSeconds: numberOf(figures.meanStepSeconds),
                tokensPerSecond: numberOf(figures.meanTokensPerSecond),
                samples: numberOf(figures.samples),
                tokens: numberOf(figures.tokens),
                memoryPeakBytes: numberOf(figures.memoryPeakAllocatedBytes),
                // An older agent does not say.
                phaseShares: (figures.phaseShares ?? []) as SummaryTraining['phaseShares'],
                time: (figures.time ?? null) as SummaryTraining['time'],
                model: record?.model ?? null,
                ranks: record?.ranks.map(summaryRank) ?? [],
                losses: [],
              },
        findings: [...this.#follower.findings.values()].filter((finding) => this.#concerns(finding, gpuIndices)).map(summaryFinding),
        notes,
      },
      price,
    )
  }

  /** Those its processes were on; all of them where that is not known, and the summary says so. */
  #shownGpus(notes: string[]): readonly FollowedGpu[] {
    const all = [...this.#follower.gpus.values()].filter(({ info }) => info.mig === null || this.#uses.has(info.id))
    const own = all.filter(({ isOwn }) => isOwn)
    if (all.length === 0 && this.#follower.sawSimulated) notes.push('This machine has no GPU: the SIMULATED ones are not part of the run.')
    if (own.length === 0 && all.length > 0) {
      if (this.#follower.processesAreKnown) {
        notes.push('No process of this command was seen on a GPU.')
        return []
      }
      notes.push('It is not known which GPU the command used (see "gpuwarden doctor"): the figures are those of all GPUs.')
    }
    return own.length > 0 ? own : all
  }

  #summaryGpu({ info, peakProcessBytes }: FollowedGpu): SummaryGpu {
    const use = (this.#uses.get(info.id) ?? new GpuUse()).summary()
    return { id: info.id, label: info.label, name: info.name, memoryTotalBytes: info.memoryTotalBytes, use, peakProcessBytes }
  }

  #concerns({ at, subject }: Finding, gpuIndices: ReadonlySet<number>): boolean {
    if (subject.run !== null) return subject.run === this.#run.id
    if (subject.gpuIndex !== null) return gpuIndices.has(subject.gpuIndex) && at >= this.#run.started_at
    return at >= this.#run.started_at
  }
}

function summaryRank({ rank, steps, lastStep, meanStepSeconds, phaseShares = [] }: AnsweredRank): SummaryRank {
  const unknown = { memoryPeakBytes: null, gpu: null, peakTemperatureCelsius: null, throttledRatio: null, peakResidentBytes: null }
  return { rank, steps, lastStep, meanStepSeconds, phaseShares, ...unknown }
}

function outcomeOf({ code, signal }: Ending, sawOutOfMemory: boolean, isNan: boolean): Outcome {
  if (code !== 0 && sawOutOfMemory) return 'oom'
  if (signal !== null) return 'killed'
  if (isNan) return 'nan'
  return code === 0 ? 'success' : 'failed'
}

function messageOf({ code, signal }: Ending): string | null {
  return signal !== null ? `ended by ${signal}` : code === 0 ? null : `exit code ${code}`
}

function summaryFinding(finding: Finding): SummaryFinding {
  const { at, detector, severity, message, subject, advice } = finding
  return { at, until: null, detector, severity, message, gpuIndex: subject.gpuIndex, run: subject.run, advice }
}
