/** Memory held by a process that is gone, or that hangs in the kernel and cannot be killed. */
import type { DetectorInput, DetectorKind } from '../core/detector-contract.ts'
import { formatBytes, formatDuration } from '../core/format.ts'
import type { Finding, GpuSample, ProcessView } from '../core/model.ts'
import { MEMORY_CHART } from './charts.ts'
import { both, type FindingBook, NO_FINDINGS } from './finding.ts'
import { gpuName, subjectOfGpu, type WatchedGpu, watchGpus } from './gpu-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

type Trouble = 'gone' | 'D' | 'Z'

interface Suspect {
  readonly pid: number
  /** It was found in /proc before, so it is in our namespace. */
  known: boolean
  user: string | null
  trouble: Trouble | null
  fromMs: number
  seenMs: number
  /** Looks of the host source since then: at least two, so that a race is not taken for a death. */
  looks: number
  lastLook: number
}

type Watched = WatchedGpu<Suspect[]>

const SUSPECT_CAP = 128

export const zombie: DetectorKind<Thresholds<'zombie'>> = {
  name: 'zombie',
  about: 'GPU memory is held by a process that is gone, or that hangs in the kernel.',
  severities: ['warning'],
  inputs: ['gpu', 'device', 'host'],
  charts: [MEMORY_CHART],
  defaults: THRESHOLDS.zombie,
  create(options) {
    /** What the host source saw last. */
    const host = { looks: 0, canLook: false, found: 0 }

    function noteHost(input: DetectorInput): readonly Finding[] {
      if (input.type !== 'host') return NO_FINDINGS
      host.looks++
      host.canLook = input.sample.processesReason === null
      host.found = input.sample.processes.length
      return NO_FINDINGS
    }

    function troubleOf(process: ProcessView, suspect: Suspect): Trouble | null {
      const state = process.info?.state ?? null
      if (state === 'D' || state === 'Z') return state
      if (process.info !== null || !host.canLook) return null
      // An unknown PID may belong to another namespace; where others are found, a missing one is really gone.
      return suspect.known || host.found > 0 ? 'gone' : null
    }

    function look(gpu: Watched, process: ProcessView, sample: GpuSample, book: FindingBook): readonly Finding[] {
      const suspect = gpu.state.find((one) => one.pid === process.pid) ?? enter(gpu, process.pid)
      suspect.seenMs = gpu.time.ms
      if (process.info) {
        suspect.known = true
        suspect.user = process.info.user
      }
      const trouble = (process.memoryUsedBytes ?? 0) >= options.memoryBytes ? troubleOf(process, suspect) : null
      if (trouble !== suspect.trouble) {
        const open = suspect.trouble !== null && book.size > 0
        suspect.trouble = trouble
        suspect.fromMs = gpu.time.ms
        suspect.looks = 0
        suspect.lastLook = host.looks
        return open
          ? book.resolve(key(gpu, suspect, book), sample.at, `Process ${suspect.pid} on ${gpuName(gpu)} is ok again.`)
          : NO_FINDINGS
      }
      if (trouble === null) return NO_FINDINGS
      if (host.looks !== suspect.lastLook) {
        suspect.looks++
        suspect.lastLook = host.looks
      }
      const heldMs = gpu.time.ms - suspect.fromMs
      if (heldMs < options.seconds * 1000 || suspect.looks < 2 || !book.due(key(gpu, suspect, book), sample.at, 'warning'))
        return NO_FINDINGS
      return book.raise(
        subjectOfGpu(gpu, { pid: suspect.pid, user: suspect.user }),
        sample.at,
        draft(gpu, suspect, trouble, process, sample.at, heldMs),
      )
    }

    return watchGpus<Suspect[]>('zombie', {
      initial: () => [],
      any: noteHost,
      sample(gpu, sample, processes, book) {
        if (sample.processes === null) return NO_FINDINGS
        let findings: readonly Finding[] = NO_FINDINGS
        for (const process of processes) findings = both(findings, look(gpu, process, sample, book))
        return both(findings, farewell(gpu, sample.at, book))
      },
      extra: { snapshot: () => ({ ...host }), restore: (state) => void Object.assign(host, state) },
    })
  },
}

function enter(gpu: Watched, pid: number): Suspect {
  if (gpu.state.length >= SUSPECT_CAP) gpu.state.shift()
  const suspect: Suspect = { pid, known: false, user: null, trouble: null, fromMs: 0, seenMs: gpu.time.ms, looks: 0, lastLook: 0 }
  gpu.state.push(suspect)
  return suspect
}

function key(gpu: Watched, suspect: Suspect, book: FindingBook): string {
  return book.key(subjectOfGpu(gpu, { pid: suspect.pid }))
}

function farewell(gpu: Watched, at: number, book: FindingBook): readonly Finding[] {
  let findings: readonly Finding[] = NO_FINDINGS
  for (let index = gpu.state.length - 1; index >= 0; index--) {
    const suspect = gpu.state[index]
    if (!suspect || gpu.time.ms - suspect.seenMs < 1000) continue
    gpu.state.splice(index, 1)
    if (book.size > 0)
      findings = both(
        findings,
        book.resolve(key(gpu, suspect, book), at, `${gpuName(gpu)} got its memory back from process ${suspect.pid}.`),
      )
  }
  return findings
}

const WORDS: Readonly<Record<Trouble, string>> = {
  gone: 'which no longer exists',
  D: 'which hangs in the kernel (state D)',
  Z: 'which has ended but was not collected by its parent (state Z)',
}

function draft(gpu: Watched, suspect: Suspect, trouble: Trouble, process: ProcessView, at: number, heldMs: number) {
  const memoryBytes = process.memoryUsedBytes ?? 0
  return {
    severity: 'warning' as const,
    since: at - heldMs,
    message: `${formatBytes(memoryBytes)} on ${gpuName(gpu)} has been held for ${formatDuration(heldMs)} by process ${suspect.pid}, ${WORDS[trouble]}.`,
    evidence: { state: trouble, memory_used_bytes: memoryBytes, seconds: Math.round(heldMs / 1000), user: suspect.user },
    confidence: trouble === 'gone' && !suspect.known ? 0.6 : 0.9,
    advice:
      trouble === 'D'
        ? ['It waits for the driver or a disk and cannot be killed; check dmesg. Often only a GPU reset or a reboot helps.']
        : [
            'Look for a child or parent that still has the GPU open (fuser -v /dev/nvidia*) and stop it.',
            'If there is none, reset the GPU.',
          ],
  }
}
