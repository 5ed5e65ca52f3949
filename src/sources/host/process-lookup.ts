import { join } from 'node:path'
import type { ProcessInfo, Reading } from '../../core/model.ts'
import { type ProcessStat, parseProcessStat } from '../../core/process-identity.ts'
import type { SourceTick } from '../../core/source-contract.ts'
import { tryList, tryReadLink } from '../../core/system-file.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { VENDORS } from '../vendors.ts'
import { type Membership, NO_MEMBERSHIP, parseCgroup } from './cgroup.ts'
import { type KernelUnits, parseCommand, parseUid } from './parse.ts'
import { isProc, KeptFile } from './proc-files.ts'
import { Users } from './users.ts'

/** A program may change its command line, user or cgroup while it runs, but does so seldom. */
const STATIC_INTERVAL_MS = 30_000
const DEVICE_INTERVAL_MS = 5000
const MAX_WATCHED = 4096
/** Files kept open; a process beyond has its own opened every time. */
const MAX_KEPT = 256
const MAX_COMMAND_BYTES = 4096
const MAX_DESCRIPTORS = 4096
const INITIAL_PID_NAMESPACE = 'pid:[4026531836]'

const FOREIGN_PIDS =
  'GPU processes cannot be looked up: the driver reports PIDs of the host, and this container has its own. Run the container with --pid=host.'

interface StaticPart extends Membership {
  readonly uid: Reading
  readonly user: string | null
  readonly executable: string | null
  readonly command: readonly string[] | null
}

/** One process; a PID with another start is another one. */
interface Known {
  readonly startTicks: number
  staticPart: StaticPart
  staticDueMs: number
  cpuTicks: number
  readAtMs: number
  cpuRatio: Reading
  hasGpu: boolean
  deviceDueMs: number
}

export class ProcessLookup {
  readonly #proc: string
  readonly #units: KernelUnits
  readonly #bootAt: Reading
  readonly #users: Users
  readonly #foreign: boolean
  #pids: readonly number[] = []
  #known = new Map<number, Known>()
  readonly #isKept: boolean
  #files = new Map<number, KeptFile>()
  /** HostSample.processesReason of the last read. */
  reason: string | null = null

  constructor(root: string, units: KernelUnits, bootSeconds: Reading) {
    this.#proc = join(root, 'proc')
    this.#units = units
    this.#bootAt = bootSeconds === null ? null : bootSeconds * 1000
    this.#users = new Users({ root })
    this.#isKept = isProc(this.#proc)
    const namespace = tryReadLink(join(this.#proc, 'self/ns/pid'))
    this.#foreign = namespace !== null && namespace !== INITIAL_PID_NAMESPACE
  }

  watch(pids: readonly number[]): void {
    this.#pids = [...new Set(pids)].filter((pid) => Number.isInteger(pid) && pid > 0).slice(0, MAX_WATCHED)
    const watched = new Set(this.#pids)
    for (const pid of this.#known.keys()) if (!watched.has(pid)) this.#known.delete(pid)
    for (const [pid, file] of this.#files) {
      if (watched.has(pid)) continue
      file.close()
      this.#files.delete(pid)
    }
  }

  read(tick: SourceTick): ProcessInfo[] {
    const processes: ProcessInfo[] = []
    for (const pid of this.#pids) {
      const folder = `${this.#proc}/${pid}`
      const stat = parseProcessStat(this.#fileOf(pid, folder).read() ?? '')
      const known = stat === null ? null : this.#recognize(pid, stat, folder, tick.monotonicMs)
      if (stat === null || known === null) this.#known.delete(pid)
      else if (!this.#foreign || known.hasGpu) processes.push(this.#info(pid, stat, known))
    }
    this.reason = this.#foreign && processes.length < this.#pids.length ? FOREIGN_PIDS : null
    return processes
  }

  #fileOf(pid: number, folder: string): KeptFile {
    let file = this.#files.get(pid)
    if (file === undefined) {
      file = new KeptFile(`${folder}/stat`, this.#isKept && this.#files.size < MAX_KEPT)
      this.#files.set(pid, file)
    }
    return file
  }

  #recognize(pid: number, stat: ProcessStat, folder: string, nowMs: number): Known {
    let known = this.#known.get(pid)
    if (known === undefined || known.startTicks !== stat.startTicks) {
      known = {
        startTicks: stat.startTicks,
        staticPart: { ...NO_MEMBERSHIP, uid: null, user: null, executable: null, command: null },
        staticDueMs: nowMs,
        cpuTicks: stat.cpuTicks,
        readAtMs: nowMs,
        cpuRatio: null,
        hasGpu: false,
        deviceDueMs: nowMs,
      }
      this.#known.set(pid, known)
    }
    if (this.#foreign && !known.hasGpu && nowMs >= known.deviceDueMs) {
      known.hasGpu = hasGpuOpen(folder)
      known.deviceDueMs = nowMs + DEVICE_INTERVAL_MS
    }
    if (nowMs >= known.staticDueMs && (!this.#foreign || known.hasGpu)) {
      known.staticPart = this.#readStatic(folder, nowMs)
      known.staticDueMs = nowMs + STATIC_INTERVAL_MS
    }
    const elapsedMs = nowMs - known.readAtMs
    if (elapsedMs > 0) {
      known.cpuRatio = (Math.max(0, stat.cpuTicks - known.cpuTicks) / this.#units.ticksPerSecond / elapsedMs) * 1000
      known.cpuTicks = stat.cpuTicks
      known.readAtMs = nowMs
    }
    return known
  }

  #readStatic(folder: string, nowMs: number): StaticPart {
    const uid = parseUid(tryReadSmallFile(`${folder}/status`) ?? '')
    const cmdline = tryReadSmallFile(`${folder}/cmdline`, MAX_COMMAND_BYTES)
    return {
      uid,
      user: uid === null ? null : this.#users.nameOf(uid, nowMs),
      executable: tryReadLink(`${folder}/exe`),
      command: cmdline === null ? null : parseCommand(cmdline),
      ...parseCgroup(tryReadSmallFile(`${folder}/cgroup`) ?? ''),
    }
  }

  #info(pid: number, stat: ProcessStat, known: Known): ProcessInfo {
    const { uid, executable, command, container, pod, slurmJob } = known.staticPart
    // A directory service answers later than /etc/passwd: asked again until it does.
    const user = known.staticPart.user ?? (uid === null ? null : this.#users.nameOf(uid, known.readAtMs))
    return {
      pid,
      parentPid: stat.parentPid,
      startedAt: this.#bootAt === null ? null : this.#bootAt + Math.round((stat.startTicks * 1000) / this.#units.ticksPerSecond),
      user,
      uid,
      name: stat.name,
      executable,
      command,
      state: stat.state,
      cpuRatio: known.cpuRatio,
      residentBytes: stat.residentPages * this.#units.pageBytes,
      container,
      pod,
      slurmJob,
    }
  }
}

/** The proof that a number which the driver gave means this process. */
function hasGpuOpen(folder: string): boolean {
  for (const descriptor of (tryList(`${folder}/fd`) ?? []).slice(0, MAX_DESCRIPTORS))
    if (isGpuDevice(tryReadLink(`${folder}/fd/${descriptor}`) ?? '')) return true
  return false
}

function isGpuDevice(path: string): boolean {
  return VENDORS.some(({ deviceFiles }) => deviceFiles.test(path))
}
