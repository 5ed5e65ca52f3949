/** Whether GPUs, processes and runs leak, as far as the time watched allows a verdict. */
import { formatBytes, formatDuration } from '../core/format.ts'
import type { HubEvent } from '../core/kinds.ts'
import { judgeCourse } from '../core/memory/leak-course.ts'
import type { Finding, GpuInfo, Reading } from '../core/model.ts'
import { RunNames } from '../core/run-names.ts'
import { type Course, type FollowedGpu, type FollowedProcess, type FollowedRun, LeakCourses } from './leak-courses.ts'

export type LeakAnswer = 'leak' | 'no leak' | 'too short to tell' | 'not known'

export interface LeakVerdict {
  readonly subject: 'gpu' | 'process' | 'run' | 'host memory'
  readonly deviceId: number | null
  readonly pid: Reading
  readonly user: string | null
  readonly run: string | null
  /** What people call it. */
  readonly runName: string | null
  readonly answer: LeakAnswer
  /** 0–1; null when nothing is claimed. */
  readonly confidence: Reading
  readonly bytesPerMinute: Reading
  /** Growth in `watchedSeconds`. */
  readonly grownBytes: Reading
  /** Epoch milliseconds when the growth began; null: no growth. */
  readonly since: Reading
  /** Of a leak: the latest period that it was judged by. */
  readonly watchedSeconds: number
  readonly message: string
  readonly advice: readonly string[]
  readonly simulated: boolean
}

export interface LeakVerdictsOptions {
  /** Less growth is no leak. */
  readonly thresholdBytes: number
  readonly devices: ReadonlySet<number> | null
  /** Called once per subject. */
  readonly onLeak?: (verdict: LeakVerdict) => void
}

const WATCH_LONGER = 'Watch for longer (--duration), over several steps or epochs of the program.'

type About = Pick<LeakVerdict, 'subject' | 'simulated'> & Partial<Pick<LeakVerdict, 'deviceId' | 'pid' | 'user' | 'run' | 'runName'>>

export class LeakVerdicts {
  readonly #options: LeakVerdictsOptions
  readonly #courses = new LeakCourses()
  readonly #leaks = new Map<string, Finding>()
  readonly #told = new Set<string>()
  readonly #names = new RunNames()

  constructor(options: LeakVerdictsOptions) {
    this.#options = options
  }

  accept(event: HubEvent): void {
    this.#courses.accept(event)
    if (event.type === 'run') this.#names.note(event.run)
  }

  acceptFinding(finding: Finding): void {
    if (finding.detector !== 'leak') return
    const key = finding.fingerprint
    if (finding.state === 'active') {
      this.#leaks.set(key, finding)
      const verdict = this.#fromFinding(finding)
      if (verdict.answer === 'leak' && !this.#told.has(key) && this.#isShown(verdict.deviceId)) {
        this.#told.add(key)
        this.#options.onLeak?.(verdict)
      }
    } else if (!this.#hasEnded(finding)) this.#leaks.delete(key)
  }

  /** GPUs by index, each with its processes; then runs and host memory. */
  verdicts(): LeakVerdict[] {
    const found = [...this.#leaks.values()].map((finding) => this.#fromFinding(finding))
    const runs = new Map(
      [...this.#courses.runs].map(([run, followed]) => [run, found.find((one) => one.run === run) ?? this.#ofRun(run, followed)]),
    )
    const verdicts: LeakVerdict[] = []
    for (const followed of [...this.#courses.gpus.values()].sort((a, b) => a.info.index - b.info.index)) {
      const { info } = followed
      if (!this.#isShown(info.index)) continue
      const leaks = found.filter((one) => one.deviceId === info.index && one.answer === 'leak')
      // A run that reports its allocator knows more than the device.
      const onIt = [...this.#courses.runs].filter(([, run]) => run.gpu === info.id).map(([run]) => runs.get(run))
      const told = onIt.find((one) => one?.answer !== 'no leak') ?? onIt.at(-1)
      verdicts.push(leaks[0] === undefined ? this.#ofGpu(followed, told) : ofLeakingGpu(info, leaks[0]))
      const processes = this.#courses.processesOn(followed)
      for (const process of processes) {
        // A run is assumed to be in the largest process.
        const run = process === processes[0] ? (leaks[0] ?? told) : undefined
        verdicts.push(leaks.find((one) => one.pid === process.pid) ?? this.#ofProcess(info, process, run))
      }
    }
    for (const verdict of runs.values()) if (this.#isShown(verdict.deviceId)) verdicts.push(verdict)
    verdicts.push(...found.filter((one) => one.subject === 'host memory'))
    return verdicts
  }

  #isShown(deviceId: number | null): boolean {
    const { devices } = this.#options
    return devices === null || deviceId === null || devices.has(deviceId)
  }

  /** A leak that ends with its process was one; one that ends because memory was freed was none. */
  #hasEnded({ subject }: Finding): boolean {
    for (const { info, sample } of this.#courses.gpus.values()) {
      if (subject.gpu === null ? info.index !== subject.gpuIndex : info.id !== subject.gpu) continue
      const pids = sample?.processes?.map((process) => process.pid) ?? null
      if (pids !== null) return subject.pid === null ? pids.length === 0 : !pids.includes(subject.pid)
    }
    return false
  }

  #fromFinding(finding: Finding): LeakVerdict {
    const { evidence, subject } = finding
    const rise = Number(evidence.riseBytes ?? 0)
    const isLarge = rise >= this.#options.thresholdBytes
    const perSecond = typeof evidence.bytesPerSecond === 'number' ? evidence.bytesPerSecond : null
    return {
      subject: evidence.source === 'host memory' ? 'host memory' : subject.run !== null ? 'run' : subject.pid !== null ? 'process' : 'gpu',
      deviceId: subject.gpuIndex,
      pid: subject.pid,
      user: subject.user,
      run: subject.run,
      runName: subject.run === null ? null : this.#names.of(subject.run),
      answer: isLarge ? 'leak' : 'no leak',
      confidence: finding.confidence,
      bytesPerMinute: perSecond === null ? null : Math.round(perSecond * 60),
      grownBytes: rise,
      since: finding.since,
      watchedSeconds: typeof evidence.lastedSeconds === 'number' ? evidence.lastedSeconds : 0,
      message: isLarge
        ? finding.message
        : `${finding.message} That is below the threshold of ${formatBytes(this.#options.thresholdBytes)}.`,
      advice: finding.advice,
      simulated: finding.provenance === 'simulated',
    }
  }

  #ofGpu({ info, course }: FollowedGpu, run: LeakVerdict | undefined): LeakVerdict {
    const about: About = { subject: 'gpu', deviceId: info.index, simulated: info.provenance === 'simulated' }
    return inLightOf(this.#without(about, course, `GPU ${info.label}: memory`), run)
  }

  #ofProcess(info: GpuInfo, { pid, user, course }: FollowedProcess, better: LeakVerdict | undefined): LeakVerdict {
    const about: About = { subject: 'process', deviceId: info.index, pid, user, simulated: info.provenance === 'simulated' }
    return inLightOf(this.#without(about, course, `GPU ${info.label}, process ${pid}: memory`), better)
  }

  #ofRun(run: string, { course, gpu }: FollowedRun): LeakVerdict {
    const info = gpu === null ? undefined : this.#courses.gpus.get(gpu)?.info
    const runName = this.#names.of(run)
    const about: About = { subject: 'run', run, runName, deviceId: info?.index ?? null, simulated: info?.provenance === 'simulated' }
    return this.#without(about, course, `Run ${runName}: allocated memory`)
  }

  /** Where the detector has found nothing. */
  #without(about: About, course: Course, name: string): LeakVerdict {
    const { bytesPerSecond, growthBytes, firstBytes, lastBytes, maxBytes, firstAt, spanMs } = course.trend
    const base = {
      deviceId: null,
      pid: null,
      user: null,
      run: null,
      runName: null,
      confidence: null,
      bytesPerMinute: bytesPerSecond === null ? null : Math.round(bytesPerSecond * 60),
      grownBytes: growthBytes === null ? null : Math.round(growthBytes),
      since: null,
      watchedSeconds: spanMs / 1000,
      advice: [],
      ...about,
    }
    const figures = `${name} went from ${formatBytes(firstBytes)} to ${formatBytes(lastBytes)} in ${formatDuration(spanMs)}, ${formatBytes(maxBytes)} at most`
    const tooShort = { ...base, answer: 'too short to tell', advice: [WATCH_LONGER] } as const
    switch (judgeCourse(course, this.#options.thresholdBytes)) {
      case 'not known':
        return { ...base, answer: 'not known', message: `${name} in use is not readable` }
      case 'still growing': {
        const message = `${figures}; it is still growing, but the time is too short to say whether it will be freed`
        return { ...tooShort, since: firstAt, message }
      }
      case 'too short':
        return { ...tooShort, message: `${figures}; the time is too short to rule out a leak` }
      case 'no leak':
        return { ...base, answer: 'no leak', message: `${figures}; it does not keep growing` }
    }
  }
}

function ofLeakingGpu(info: GpuInfo, leak: LeakVerdict): LeakVerdict {
  if (leak.subject === 'gpu') return leak
  const where = leak.run === null ? `process ${leak.pid}` : `run ${leak.runName}`
  return {
    ...leak,
    subject: 'gpu',
    pid: null,
    user: null,
    run: null,
    runName: null,
    message: `GPU ${info.label}: memory leaks, in ${where}`,
    advice: [],
  }
}

/** Where a run reports its allocator, growth on the device or of the process is its cache or its leak. */
function inLightOf(verdict: LeakVerdict, run: LeakVerdict | undefined): LeakVerdict {
  if (run === undefined || verdict.answer !== 'too short to tell' || run.subject !== 'run') return verdict
  const { answer, confidence, bytesPerMinute, grownBytes, since, watchedSeconds } = run
  const course = verdict.message.split('; ')[0]
  if (answer === 'leak') {
    const message = `${course}; run ${run.runName}, which leaks, probably runs in it`
    return { ...verdict, answer, confidence, bytesPerMinute, grownBytes, since, watchedSeconds, message, advice: [] }
  }
  if (answer !== 'no leak') return verdict
  const message = `${course}; the allocator of run ${run.runName} does not keep growing`
  return { ...verdict, answer, message, since: null, advice: [] }
}

/** For --json. */
export function leakRecord(verdict: LeakVerdict) {
  return {
    subject: verdict.subject,
    device_id: verdict.deviceId,
    pid: verdict.pid,
    user: verdict.user,
    run: verdict.run,
    run_name: verdict.runName,
    verdict: verdict.answer.replaceAll(' ', '_'),
    confidence: verdict.confidence,
    bytes_per_minute: verdict.bytesPerMinute,
    grown_bytes: verdict.grownBytes,
    since: verdict.since === null ? null : new Date(verdict.since).toISOString(),
    watched_seconds: Math.round(verdict.watchedSeconds * 10) / 10,
    message: verdict.message,
    advice: verdict.advice,
    simulated: verdict.simulated,
  }
}
