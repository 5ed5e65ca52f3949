/** The processes on one GPU as the intruder detector remembers them: who came when, and upon whom. */
import type { GpuSample, ProcessInfo, ProcessView } from '../core/model.ts'
import type { WatchedGpu } from './gpu-watch.ts'
import { identityOf } from './intruder-policy.ts'

/** `forbidden` by the policy; `joined` a GPU that was held; on a GPU that a `run` claims; `new` to this machine. */
export type Reason = 'forbidden' | 'joined' | 'run' | 'new'

export interface Tenant {
  readonly pid: number
  readonly sinceMs: number
  /** Present when watching began: we do not know who came first. */
  readonly resident: boolean
  memoryBytes: number | null
  user: string | null
  identity: string | null
  startedAt: number | null
  parentPid: number | null
  seenMs: number
  /** Whose GPU it came upon; null when nobody held it. */
  holder: number | null
  /** Why it is an intruder; null when it is not. */
  reason: Reason | null
  /** Judged for good: who it is was known, or will not be. */
  judged: boolean
}

export interface Tenancy {
  /** The process list has been seen at least once. */
  started: boolean
  tenants: Tenant[]
}

const TENANT_CAP = 128
/** A process list that misses a process for a moment does not mean that it left. */
const GONE_MS = 1000

export function find(tenancy: Tenancy, pid: number): Tenant | undefined {
  for (const tenant of tenancy.tenants) if (tenant.pid === pid) return tenant
  return undefined
}

/** Enters a process that was not there; one with the same PID but another start time was another process. */
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

/** Takes out and gives those that have been gone for long enough. */
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

/** The one tenant that held this GPU when the joiner came; null when nobody did, or when it was shared already. */
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
    // What starts together belongs together, and two that share a GPU already are not an owner.
    if (joiner.sinceMs - tenant.sinceMs < options.holderSeconds * 1000) return null
    if (holder !== null && !related(holder, tenant)) return null
    holder = tenant
  }
  return holder
}

/** Of one user, or of one family of processes; false as long as that cannot be told. */
export function related(one: Tenant, other: Tenant): boolean {
  if (one.user !== null && other.user !== null) return one.user === other.user
  if (one.parentPid !== null && one.parentPid > 1 && (one.parentPid === other.pid || one.parentPid === other.parentPid)) return true
  return other.parentPid === one.pid
}
