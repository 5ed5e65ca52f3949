import type { HostSample, ProcessInfo } from '../../core/model.ts'
import { NO_HOST_READINGS } from '../../core/record.ts'
import { isLost } from './gpu-sample.ts'
import { type GpuPlan, intruderOf, type Job, jobAt, phaseAt } from './jobs.ts'
import { drift, roundTo } from './noise.ts'

const GIBIBYTE = 1024 ** 3
const MEBIBYTE = 1024 * 1024
const CPU_COUNT = 96
const MEMORY_BYTES = 1024 * GIBIBYTE
const DISK_BYTES = 3500 * GIBIBYTE
/** Between the children's PIDs and the intruders': shells that started the jobs. */
const PARENT_OFFSET = 500_000

export function hostSample(plans: readonly GpuPlan[], seed: number, at: number, seconds: number): HostSample {
  const processes: ProcessInfo[] = []
  for (const plan of plans) {
    const job = jobAt(plan, seconds)
    if (job !== null) processes.push(jobProcess(job, at, seconds))
    const intruder = intruderOf(job, seconds)
    if (intruder !== null) processes.push(intruderProcess(intruder.pid, startedAt(at, seconds, intruder.since)))
  }
  let cores = 2.5 + 1.2 * drift(seed, 501, seconds, 20)
  let used = 46 * GIBIBYTE
  for (const process of processes) {
    // The data loaders of a job are other processes: they count for the machine only.
    cores += (process.cpuRatio ?? 0) * 6
    used += (process.residentBytes ?? 0) * 1.6
  }
  used = Math.round((used + 2 * GIBIBYTE * drift(seed, 502, seconds, 45)) / 4096) * 4096
  const load = (seconds: number, period: number) => roundTo(Math.max(0, cores + 1.5 * drift(seed, 503, seconds, period)), 0.01)
  return {
    kind: 'host',
    at,
    hostname: 'simulated',
    ...NO_HOST_READINGS,
    cpuRatio: roundTo(Math.min(1, cores / CPU_COUNT), 0.001),
    cpuCount: CPU_COUNT,
    load1: load(seconds, 60),
    load5: load(seconds, 300),
    load15: load(seconds, 900),
    memoryTotalBytes: MEMORY_BYTES,
    memoryUsedBytes: Math.min(used, MEMORY_BYTES),
    memoryAvailableBytes: Math.max(0, MEMORY_BYTES - used),
    swapTotalBytes: 0,
    swapUsedBytes: 0,
    diskTotalBytes: DISK_BYTES,
    diskFreeBytes: DISK_BYTES - 1400 * GIBIBYTE - Math.floor(seconds / 60) * MEBIBYTE,
    processes,
    processesReason: null,
  }
}

function jobProcess(job: Job, at: number, seconds: number): ProcessInfo {
  const { plan } = job
  const { workload, seed, gpu } = plan
  const hanging = phaseAt(job, seconds) === 'hanging'
  const age = seconds - job.start
  const resident = workload.residentGibibytes * Math.min(1, 0.15 + age / 12) + 0.15 * drift(seed, gpu + 600, seconds, 11)
  return {
    pid: job.pid,
    parentPid: job.pid + PARENT_OFFSET,
    startedAt: startedAt(at, seconds, job.start),
    user: workload.user,
    uid: workload.uid,
    name: 'python',
    executable: `/home/${workload.user}/venv/bin/python3.11`,
    command: workload.command,
    state: isLost(plan, seconds) ? 'D' : hanging ? 'S' : 'R',
    cpuRatio: hanging ? 0 : roundTo(1.1 + 0.12 * drift(seed, gpu + 700, seconds, 4), 0.01),
    residentBytes: Math.round(Math.max(0.2, resident) * 1024) * MEBIBYTE,
    container: workload.container,
    pod: null,
    slurmJob: workload.slurmJob,
  }
}

function intruderProcess(pid: number, since: number): ProcessInfo {
  return {
    pid,
    parentPid: 1,
    startedAt: since,
    user: 'mallory',
    uid: 1066,
    name: 'worker',
    executable: '/tmp/.cache/worker',
    command: ['/tmp/.cache/worker', '--quiet'],
    state: 'S',
    cpuRatio: 0.08,
    residentBytes: 310 * MEBIBYTE,
    container: null,
    pod: null,
    slurmJob: null,
  }
}

/** Each part rounded by itself, so that it is the same at every tick. */
function startedAt(at: number, seconds: number, start: number): number {
  return Math.round(at) - Math.round(seconds * 1000) + Math.round(start * 1000)
}
