/** What remains of a simulated job that ran out of memory: the report that the SDK would have sent. */
import { formatBytes } from '../../core/format.ts'
import { causeWords, placeText } from '../../core/memory/oom-report.ts'
import type { RunEnding } from '../../core/model.ts'
import { cardOf } from './cards.ts'
import { CONTEXT_BYTES, jobMemory } from './job-memory.ts'
import { type Job, trainedSeconds } from './jobs.ts'

const MEBIBYTE = 1024 * 1024
const REQUESTED_BYTES = 192 * MEBIBYTE

export interface PostMortem {
  readonly ending: RunEnding
  readonly report: Readonly<Record<string, unknown>>
}

export function oomOf(job: Job, run: string, at: number): PostMortem {
  const { plan, wrong, end } = job
  const card = cardOf(plan.gpu)
  const from = wrong?.from ?? job.start
  const [before, last] = [jobMemory(job, from), jobMemory(job, end - 0.01)]
  const steps = Math.round((trainedSeconds(job, end) - trainedSeconds(job, from)) / plan.workload.stepSeconds)
  const grown = last.allocatedBytes - before.allocatedBytes
  const perStep = Math.round(grown / steps)
  const script = `/home/${plan.workload.user}/${plan.workload.script}`
  const holder = { file: script, line: 77, function: 'training_step' }
  const free = card.memoryBytes - card.driverBytes - CONTEXT_BYTES - last.reservedBytes
  // It fails in the middle of a step, after the cache was given back.
  const fragmented = last.reservedBytes - last.peakAllocatedBytes
  const message = `CUDA out of memory. Tried to allocate ${formatBytes(REQUESTED_BYTES)}. GPU 0 has a total capacity of ${formatBytes(card.memoryBytes)} of which ${formatBytes(free)} is free.`
  return {
    ending: { message, cause: causeWords('leak'), place: placeText(holder), isAsked: false, isPresumed: false },
    report: {
      ...{ kind: 'oom', at, run, rank: 0, pid: job.pid, message, requested_bytes: REQUESTED_BYTES },
      cause: {
        kind: 'leak',
        message: `tensors grew by ${formatBytes(perStep)} per step, ${formatBytes(grown)} over the last ${steps} steps, and did not go back down: something keeps what each step makes (losses with their graphs, outputs in a list, hooks): detach() what you keep`,
      },
      stack: [
        { file: script, line: 142, function: '<module>' },
        { file: script, line: 118, function: 'main' },
        { file: script, line: 74, function: 'training_step' },
      ],
      ledger: [
        { name: 'torch_allocated', bytes: last.peakAllocatedBytes, explanation: 'Tensors that PyTorch held.' },
        {
          name: 'torch_inactive_split',
          bytes: fragmented,
          explanation: 'Fragmented memory: unusable pieces of segments that are partly in use.',
        },
        {
          name: 'non_torch',
          bytes: CONTEXT_BYTES,
          explanation: "This process, outside PyTorch's allocator: CUDA context, NCCL, libraries.",
        },
        { name: 'other_processes', bytes: card.driverBytes, explanation: "Other processes, and the driver's reserve." },
        { name: 'free', bytes: free, explanation: 'Available to anybody.' },
      ],
      holders: [{ ...holder, bytes: grown, blocks: steps * 24 }],
      growth: { bytes: grown, steps, bytes_per_step: perStep, seconds: Math.round(end - from) },
      allocator: { retries: last.allocRetries, peak_allocated: last.peakAllocatedBytes },
      snapshot: { path: null, reason: 'a simulated process has no snapshot' },
    },
  }
}
