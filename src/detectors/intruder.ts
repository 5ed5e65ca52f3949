/** An unexpected process: forbidden by the policy, or on a GPU that a run claims or somebody else uses. On an empty GPU it is at most information. */
import { BoundedMap } from '../core/bounded-map.ts'
import { type DetectorInput, type DetectorKind, MOST_RUNS } from '../core/detector-contract.ts'
import { formatBytes } from '../core/format.ts'
import type { Finding, GpuSample, ProcessInfo, ProcessView, Severity } from '../core/model.ts'
import { MEMORY_CHART } from './charts.ts'
import { both, type FindingBook, NO_FINDINGS } from './finding.ts'
import { gpuName, subjectOfGpu, type WatchedGpu, watchGpus } from './gpu-watch.ts'
import { type IntruderPolicy, identityOf, policyTest } from './intruder-policy.ts'
import { departed, enter, find, holderOf, identify, type Reason, related, type Tenancy, type Tenant } from './intruder-tenants.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

export type IntruderOptions = IntruderPolicy & Thresholds<'intruder'>

interface Claim {
  readonly gpus: readonly string[]
  readonly user: string | null
  readonly pid: number | null
}

type Watched = WatchedGpu<Tenancy>

const KNOWN_CAP = 256
/** How long to wait for the lookup of a process before it is judged as unknown. */
const LOOKUP_MS = 5000

export const intruder: DetectorKind<IntruderOptions> = {
  name: 'intruder',
  about: 'An unexpected process uses a GPU: the policy does not allow it, or somebody else already uses that GPU.',
  severities: ['info', 'warning', 'critical'],
  inputs: ['gpu', 'device', 'run'],
  charts: [MEMORY_CHART],
  defaults: { allowedUsers: [], allowedCommands: [], allowedContainers: [], claims: [], ...THRESHOLDS.intruder },
  create(options, maxRuns = MOST_RUNS) {
    const judge = policyTest(options)
    const learnMs = options.learnMinutes * 60_000
    const written = [options.allowedUsers, options.allowedCommands, options.allowedContainers, options.claims].some(
      (list) => list.length > 0,
    )
    /** Identities learned per GPU, and all identities seen. */
    const known = new BoundedMap<string, true>(KNOWN_CAP)
    const met = new BoundedMap<string, true>(KNOWN_CAP)
    const runs = new BoundedMap<string, Claim>(maxRuns, { isRenewed: true })
    let lookedUp = false

    function noteRun(input: DetectorInput): readonly Finding[] {
      if (input.type !== 'run') return NO_FINDINGS
      const { id, gpus, user, pid, endedAt } = input.run
      if (endedAt !== null) runs.delete(id)
      else if (gpus.length > 0) runs.set(id, { gpus, user, pid })
      return NO_FINDINGS
    }

    function claimedByOther(gpu: Watched, info: ProcessInfo): boolean {
      if (runs.size === 0 || info.user === null) return false
      let claimed = false
      for (const claim of runs.values()) {
        if (claim.user === null || !(claim.gpus.includes(gpu.id) || claim.gpus.includes(gpu.facts?.label ?? ''))) continue
        if (claim.user === info.user || claim.pid === info.pid) return false
        claimed = true
      }
      return claimed
    }

    function reasonFor(gpu: Watched, tenant: Tenant, process: ProcessView): Reason | null {
      const { info } = process
      const verdict = judge(info, gpu.id, gpu.facts?.label ?? null)
      if (verdict !== 'unknown') return verdict === 'forbidden' ? 'forbidden' : null
      // Desktop windows share a GPU with everything.
      if (tenant.resident || process.type === 'graphics') return null
      if (info && claimedByOther(gpu, info)) return 'run'
      if (info && known.has(`${gpu.id}|${identityOf(info)}`)) return null
      const holder = tenant.holder === null ? undefined : find(gpu.state, tenant.holder)
      if (holder) return related(tenant, holder) ? null : 'joined'
      return info && !written && gpu.time.ms >= learnMs && !met.has(identityOf(info)) ? 'new' : null
    }

    function settle(gpu: Watched, tenant: Tenant, process: ProcessView, at: number, book: FindingBook): readonly Finding[] {
      const { info } = process
      if (info === null && lookedUp && gpu.time.ms - tenant.sinceMs < LOOKUP_MS) return NO_FINDINGS
      const before = tenant.reason
      tenant.reason = reasonFor(gpu, tenant, process)
      if (info) {
        tenant.judged = true
        met.set(identityOf(info), true)
        if (tenant.reason === null && gpu.time.ms < learnMs) known.set(`${gpu.id}|${identityOf(info)}`, true)
      }
      if (before === null || tenant.reason !== null) return NO_FINDINGS
      return book.resolve(
        book.key(subjectOfGpu(gpu, { pid: tenant.pid })),
        at,
        `Process ${tenant.pid} on ${gpuName(gpu)} is expected after all.`,
      )
    }

    function look(gpu: Watched, process: ProcessView, sample: GpuSample, book: FindingBook): readonly Finding[] {
      const { info } = process
      let tenant = find(gpu.state, process.pid)
      const reused =
        tenant !== undefined && tenant.startedAt !== null && info !== null && info.startedAt !== null && info.startedAt !== tenant.startedAt
      let findings: readonly Finding[] = NO_FINDINGS
      if (!tenant || reused) {
        if (reused) findings = book.resolve(book.key(subjectOfGpu(gpu, { pid: process.pid })), sample.at)
        tenant = enter(gpu, process)
        tenant.holder = holderOf(gpu, tenant, sample, options)?.pid ?? null
      }
      tenant.seenMs = gpu.time.ms
      tenant.memoryBytes = process.memoryUsedBytes
      if (info) {
        lookedUp = true
        if (tenant.identity === null) identify(tenant, info)
      }
      if (!tenant.judged) findings = both(findings, settle(gpu, tenant, process, sample.at, book))
      return tenant.reason === null ? findings : both(findings, report(gpu, tenant, process, sample, book))
    }

    return watchGpus<Tenancy>('intruder', {
      initial: () => ({ started: false, tenants: [] }),
      any: noteRun,
      sample(gpu, sample, processes, book) {
        if (sample.processes === null) return NO_FINDINGS
        let findings: readonly Finding[] = NO_FINDINGS
        for (const process of processes) findings = both(findings, look(gpu, process, sample, book))
        gpu.state.started = true
        return both(findings, farewell(gpu, sample.at, book))
      },
      extra: {
        snapshot: () => ({ known: known.saved(), met: met.saved(), runs: runs.saved(), lookedUp }),
        restore(state) {
          const saved = state as { known: unknown; met: unknown; runs: unknown; lookedUp: boolean }
          known.load(saved.known)
          met.load(saved.met)
          runs.load(saved.runs)
          lookedUp = saved.lookedUp
        },
      },
    })
  },
}

/** Ends the findings about processes that left, or whose holder left. */
function farewell(gpu: Watched, at: number, book: FindingBook): readonly Finding[] {
  let findings: readonly Finding[] = NO_FINDINGS
  const end = (pid: number, why: string) => {
    findings = both(findings, book.resolve(book.key(subjectOfGpu(gpu, { pid })), at, why))
  }
  for (const tenant of departed(gpu)) if (tenant.reason !== null) end(tenant.pid, `Process ${tenant.pid} has left ${gpuName(gpu)}.`)
  if (book.size === 0) return findings
  for (const tenant of gpu.state.tenants) {
    if (tenant.reason !== 'joined' || tenant.holder === null || find(gpu.state, tenant.holder)) continue
    end(tenant.pid, `Process ${tenant.holder} has left ${gpuName(gpu)}: process ${tenant.pid} disturbs nobody there anymore.`)
    tenant.reason = null
    tenant.judged = true
  }
  return findings
}

const SEVERITY: Readonly<Record<Reason, Severity>> = { forbidden: 'critical', joined: 'warning', run: 'warning', new: 'info' }

function report(gpu: Watched, tenant: Tenant, process: ProcessView, sample: GpuSample, book: FindingBook): readonly Finding[] {
  const reason = tenant.reason ?? 'joined'
  const severity = SEVERITY[reason]
  const subject = subjectOfGpu(gpu, { pid: tenant.pid, user: tenant.user })
  if (!book.due(book.key(subject), sample.at, severity)) return NO_FINDINGS
  const holder = tenant.holder === null ? undefined : find(gpu.state, tenant.holder)
  return book.raise(subject, sample.at, {
    severity,
    message: `${who(process)} ${statement(reason, gpu, tenant.holder, holder)}.`,
    evidence: {
      reason,
      memory_used_bytes: process.memoryUsedBytes,
      user: tenant.user,
      executable: process.info?.executable ?? null,
      container: process.info?.container ?? null,
      holder_pid: tenant.holder,
      holder_user: holder?.user ?? null,
      holder_memory_bytes: holder?.memoryBytes ?? null,
      utilization_ratio: sample.utilizationRatio,
    },
    confidence: reason === 'forbidden' ? 1 : process.info === null ? 0.6 : 0.85,
    advice: reason === 'new' ? [] : ADVICE,
  })
}

const ADVICE = [
  'Ask its owner to move it, or stop it.',
  'If it is allowed, add it to the allow list: policy.allowed_users or policy.allowed_commands.',
]

function who(process: ProcessView): string {
  const { info } = process
  const memory = process.memoryUsedBytes === null ? '' : `, ${formatBytes(process.memoryUsedBytes)}`
  if (info === null) return `An unknown process (PID ${process.pid}${memory})`
  return `${info.name ?? 'A process'} of ${info.user ?? 'an unknown user'} (PID ${process.pid}${memory})`
}

function statement(reason: Reason, gpu: Watched, holderPid: number | null, holder: Tenant | undefined): string {
  const name = gpuName(gpu)
  if (reason === 'forbidden') return `uses ${name}, but the policy does not allow it`
  if (reason === 'run') return `uses ${name}, but a training run of another user claims that GPU`
  if (reason === 'new') return `uses ${name} and has not been seen on this machine before`
  const held = holder?.memoryBytes
  return `joined ${name}, which ${holder?.user ?? 'another process'} (PID ${holderPid}${typeof held === 'number' ? `, ${formatBytes(held)}` : ''}) already uses`
}
