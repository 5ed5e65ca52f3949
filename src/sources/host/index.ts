/** The machine around the GPUs: processors, memory, disk, and who the processes on the GPUs are. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Source, SourceEnv, SourceKind, SourceTick } from '../../kinds.ts'
import type { GpuInfo, HostSample } from '../../model.ts'
import { type DiskSpace, NO_DISK, readDiskSpace } from './disk.ts'
import {
  type CpuTimes,
  countCpus,
  cpuRatioBetween,
  parseBootTime,
  parseCpuTimes,
  parseKernelUnits,
  parseLoad,
  parseMemory,
} from './parse.ts'
import { errorCode, readProcBytes, readProcFile } from './proc-files.ts'
import { ProcessLookup } from './process-lookup.ts'

/** A log folder on a network costs a question to the server. */
const DISK_INTERVAL_MS = 10_000
const NO_DEVICES: readonly GpuInfo[] = []

export const host: SourceKind = {
  name: 'host',
  minIntervalMs: 1000,
  async open(env) {
    const stat = readWhole(join(env.root, 'proc/stat'))
    return stat === null ? null : new HostReader(env, stat)
  },
}

class HostReader implements Source {
  readonly provenance = 'live'
  readonly #proc: string
  readonly #logDir: string | undefined
  readonly #processes: ProcessLookup
  #cpu: CpuTimes | null = null
  #disk: DiskSpace = NO_DISK
  #diskDueMs = Number.NEGATIVE_INFINITY

  constructor(env: SourceEnv, stat: string) {
    this.#proc = join(env.root, 'proc')
    this.#logDir = env.options.logDir
    const units = parseKernelUnits(readProcBytes(join(this.#proc, 'self/auxv')) ?? Buffer.alloc(0))
    this.#processes = new ProcessLookup(env.root, units, parseBootTime(stat))
  }

  devices(): readonly GpuInfo[] {
    return NO_DEVICES
  }

  watch(pids: readonly number[]): void {
    this.#processes.watch(pids)
  }

  read(tick: SourceTick): readonly HostSample[] {
    const stat = this.#file('stat')
    const before = this.#cpu
    const cpu = parseCpuTimes(stat)
    this.#cpu = cpu
    const [load1, load5, load15] = parseLoad(this.#file('loadavg'))
    const processes = this.#processes.read(tick)
    return [
      {
        kind: 'host',
        at: tick.at,
        hostname: this.#file('sys/kernel/hostname').trim() || hostname(),
        cpuRatio: before === null || cpu === null ? null : cpuRatioBetween(before, cpu),
        cpuCount: countCpus(stat),
        load1,
        load5,
        load15,
        ...parseMemory(this.#file('meminfo')),
        ...this.#readDisk(tick.monotonicMs),
        processes,
        processesReason: this.#processes.reason,
      },
    ]
  }

  close(): void {
    this.#processes.watch([])
  }

  #file(name: string): string {
    return readProcFile(`${this.#proc}/${name}`) ?? ''
  }

  #readDisk(nowMs: number): DiskSpace {
    if (this.#logDir !== undefined && nowMs >= this.#diskDueMs) {
      this.#disk = readDiskSpace(this.#logDir)
      this.#diskDueMs = nowMs + DISK_INTERVAL_MS
    }
    return this.#disk
  }
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
