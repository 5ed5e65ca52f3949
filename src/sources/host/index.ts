/** The machine around the GPUs: processors, memory, disk, and who the processes on the GPUs are. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { GpuInfo, Sample } from '../../core/model.ts'
import { parseBootTime } from '../../core/process-identity.ts'
import { NO_HOST_READINGS } from '../../core/record.ts'
import type { RunProcessRef, Source, SourceEnv, SourceKind, SourceTick } from '../../core/source-contract.ts'
import { errorCode, tryReadBytes } from '../../core/system-file.ts'
import { KernelLogFollower } from '../kernel-log.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { DiskWatch, NO_DISK, readDiskSpace } from './disk.ts'
import { killEvent, OOM_KILL_LINES, type OomKill } from './oom-kills.ts'
import { type CpuTimes, countCpus, cpuRatioBetween, parseCpuTimes, parseKernelUnits, parseLoad, parseMemory } from './parse.ts'
import { isProc, KeptFile } from './proc-files.ts'
import { ProcessLookup } from './process-lookup.ts'
import { ProcessTrees } from './process-trees.ts'
import { ScheduledShutdown } from './scheduled-shutdown.ts'

/** A log folder on a network costs a question to the server. */
const NAME_INTERVAL_MS = 10_000
const NO_DEVICES: readonly GpuInfo[] = []

export const host: SourceKind = {
  name: 'host',
  minIntervalMs: 1000,
  async open(env) {
    const stat = readWhole(join(env.root, 'proc/stat'))
    if (stat === null) return null
    const { logDir } = env.options
    const disk = logDir === undefined ? null : new DiskWatch(() => readDiskSpace(logDir))
    await disk?.first()
    return new HostReader(env, stat, disk)
  },
}

class HostReader implements Source {
  readonly provenance = 'live'
  readonly #proc: string
  readonly #disk: DiskWatch | null
  readonly #processes: ProcessLookup
  readonly #trees: ProcessTrees
  #cpu: CpuTimes | null = null
  readonly #stat: KeptFile
  readonly #load: KeptFile
  readonly #memory: KeptFile
  readonly #shutdown: ScheduledShutdown
  readonly #kernelLog: KernelLogFollower<OomKill>
  #hostname = ''
  #hostnameDueMs = Number.NEGATIVE_INFINITY

  constructor(env: SourceEnv, stat: string, disk: DiskWatch | null) {
    this.#proc = join(env.root, 'proc')
    this.#disk = disk
    const units = parseKernelUnits(tryReadBytes(join(this.#proc, 'self/auxv')) ?? Buffer.alloc(0))
    this.#processes = new ProcessLookup(env.root, units, parseBootTime(stat))
    this.#trees = new ProcessTrees(env.root, units.pageBytes)
    this.#stat = keptFile(`${this.#proc}/stat`)
    this.#load = keptFile(`${this.#proc}/loadavg`)
    this.#memory = keptFile(`${this.#proc}/meminfo`)
    this.#shutdown = new ScheduledShutdown(env.root)
    this.#kernelLog = new KernelLogFollower(env, OOM_KILL_LINES)
  }

  devices(): readonly GpuInfo[] {
    return NO_DEVICES
  }

  watch(pids: readonly number[], runs: readonly RunProcessRef[] = []): void {
    this.#processes.watch(pids)
    this.#trees.watch(runs)
  }

  read(tick: SourceTick): readonly Sample[] {
    const stat = this.#stat.read() ?? ''
    const before = this.#cpu
    const cpu = parseCpuTimes(stat)
    this.#cpu = cpu
    const [load1, load5, load15] = parseLoad(this.#load.read() ?? '')
    const processes = this.#processes.read(tick)
    const memory = parseMemory(this.#memory.read() ?? '')
    const trees = this.#trees.read(
      tick,
      processes.map(({ pid }) => pid),
      memory.memoryTotalBytes,
    )
    const shutdown = this.#shutdown.read(tick.at)
    return [
      ...this.#kernelLog.read(tick).map((kill) => killEvent(kill, tick.at)),
      ...(shutdown ? [shutdown] : []),
      {
        kind: 'host',
        at: tick.at,
        hostname: this.#readName(tick.monotonicMs),
        ...NO_HOST_READINGS,
        cpuRatio: before === null || cpu === null ? null : cpuRatioBetween(before, cpu),
        cpuCount: countCpus(stat),
        load1,
        load5,
        load15,
        ...memory,
        ...(this.#disk?.read(tick.monotonicMs) ?? NO_DISK),
        processes,
        processesReason: this.#processes.reason,
        ...(trees !== null && trees.length > 0 ? { trees } : {}),
      },
    ]
  }

  close(): void {
    this.#processes.watch([])
    this.#kernelLog.close()
    for (const file of [this.#stat, this.#load, this.#memory]) file.close()
  }

  #readName(nowMs: number): string {
    if (nowMs >= this.#hostnameDueMs) {
      this.#hostname = (tryReadSmallFile(`${this.#proc}/sys/kernel/hostname`) ?? '').trim() || hostname()
      this.#hostnameDueMs = nowMs + NAME_INTERVAL_MS
    }
    return this.#hostname
  }
}

/** Containers may have a file of their own in the place of the kernel's (lxcfs). */
function keptFile(path: string): KeptFile {
  return new KeptFile(path, isProc(path))
}

/** The boot time stands behind a line that is very long on large machines. */
function readWhole(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') return null
    throw new Error(`cannot read ${path} (${code}): the host source needs /proc; allow this user to read it, or leave the source out`, {
      cause: error,
    })
  }
}
