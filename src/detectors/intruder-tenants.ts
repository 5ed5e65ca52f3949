/** The processes on one GPU as the intruder detector remembers them: who came when, and who held it then. */
import type { GpuSample, ProcessInfo, ProcessView } from '../core/model.ts'
import type { WatchedGpu } from './gpu-watch.ts'
import { identityOf } from './intruder-policy.ts'

/** `forbidden` by the policy; `joined` a GPU in use; on a GPU that a `run` claims; `new` to this machine. */
export type Reason = 'forbidden' | 'joined' | 'run' | 'new'

export interface Tenant {
  readonly pid: number
  readonly sinceMs: number
  /** Present when watching began: who came first is unknown. */
  readonly resident: boolean
  memoryBytes: number | null
  user: string | null
  identity: string | null
  startedAt: number | null
  parentPid: number | null
  seenMs: number
  /** PID that held the GPU when it came; null: nobody. */
  holder: number | null
  /** Why it is an intruder; null: it is not. */
  reason: Reason | null
  /** Final verdict: it was identified, or never will be. */
  judged: boolean
}

export interface Tenancy {
  /** The process list has been seen at least once. */
  started: boolean
  tenants: Tenant[]
}

const TENANT_CAP = 128
/** A process list may miss a process for a moment. */
const GONE_MS = 1000

export function find(tenancy: Tenancy, pid: number): Tenant | undefined {
  for (const tenant of tenancy.tenants) if (tenant.pid === pid) return tenant
  return undefined
}

/** Adds a new process; the same PID with another start time is another process. */
export function enter(gpu: WatchedGpu<Tenancy>, process: ProcessView): Tenant {
  const { state, time } = gpu
  const same = state.tenants.findIndex((tenant) => tenant.pid === process.pid)
  if (same >= 0) state.tenants.splice(same, 1)
  if (state.tenants.length >= TENANT_CAP) state.tenants.shift()
  const tenant: Tenant = {
    pid: process.pid,
    sinceMs: time.ms,
    resident: !state.started,
    memoryBytes: process.memoryUsedBytes,
    user: null,
    identity: null,
    startedAt: null,
    parentPid: null,
    seenMs: time.ms,
    holder: null,
    reason: null,
    judged: false,
  }
  state.tenants.push(tenant)
  return tenant
}

export function identify(tenant: Tenant, info: ProcessInfo): void {
  tenant.user = info.user
  tenant.identity = identityOf(info)
  tenant.startedAt = info.startedAt
  tenant.parentPid = info.parentPid
}

/** Removes and returns those that have been gone for long enough. */
export function departed(gpu: WatchedGpu<Tenancy>): readonly Tenant[] {
  const { tenants } = gpu.state
  let gone: Tenant[] | null = null
  for (let index = tenants.length - 1; index >= 0; index--) {
    const tenant = tenants[index]
    if (!tenant || gpu.time.ms - tenant.seenMs < GONE_MS) continue
    tenants.splice(index, 1)
    gone ??= []
    gone.push(tenant)
  }
  return gone ?? []
}

/** The tenant that held this GPU when the joiner came; null when nobody did, or when it was already shared. */
export function holderOf(
  gpu: WatchedGpu<Tenancy>,
  joiner: Tenant,
  sample: GpuSample,
  options: { readonly holderMemoryBytes: number; readonly holderSeconds: number },
): Tenant | null {
  let holder: Tenant | null = null
  for (const tenant of gpu.state.tenants) {
    if (tenant === joiner || (tenant.reason !== null && tenant.reason !== 'new')) continue
    const memoryBytes = tenant.memoryBytes ?? sample.memoryUsedBytes
    if (memoryBytes === null || memoryBytes < options.holderMemoryBytes) continue
    // Processes that start together belong together, and a GPU that two share has no owner.
    if (joiner.sinceMs - tenant.sinceMs < options.holderSeconds * 1000) return null
    if (holder !== null && !related(holder, tenant)) return null
    holder = tenant
  }
  return holder
}

/** Same user, or same family of processes; false while unknown. */
export function related(one: Tenant, other: Tenant): boolean {
  if (one.user !== null && other.user !== null) return one.user === other.user
  if (one.parentPid !== null && one.parentPid > 1 && (one.parentPid === other.pid || one.parentPid === other.parentPid)) return true
  return other.parentPid === one.pid
}
