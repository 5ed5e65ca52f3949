/** Who may use which GPU: the written policy, and the test of one process against it. */
import type { ProcessInfo } from '../core/model.ts'

export interface IntruderPolicy {
  readonly allowedUsers: readonly string[]
  readonly allowedCommands: readonly string[]
  readonly allowedContainers: readonly string[]
  /** `GPU=USER`, the GPU by label or identity. */
  readonly claims: readonly string[]
}

/** `unknown`: no rule applies, or the process could not be identified. */
export type Verdict = 'allowed' | 'forbidden' | 'unknown'

/** Services of the driver itself. */
const SERVICES = new Set(['nvidia-cuda-mps-server', 'nvidia-cuda-mps-control', 'nvidia-persistenced', 'nv-hostengine', 'dcgm-exporter'])

export function isService(info: ProcessInfo): boolean {
  return info.name !== null && SERVICES.has(info.name)
}

/** `*` and `?` are wildcards; everything else is literal. */
export function glob(pattern: string): (text: string) => boolean {
  if (!/[*?]/.test(pattern)) return (text) => text === pattern
  const source = pattern
    .split('')
    .map((letter) => (letter === '*' ? '.*' : letter === '?' ? '.' : letter.replace(/[\\^$.|+()[\]{}]/g, '\\$&')))
    .join('')
  const expression = new RegExp(`^${source}$`, 's')
  return (text) => expression.test(text)
}

export function policyTest(policy: IntruderPolicy): (info: ProcessInfo | null, gpuId: string, gpuLabel: string | null) => Verdict {
  const users = new Set(policy.allowedUsers)
  const commands = policy.allowedCommands.map(glob)
  const containers = policy.allowedContainers.map(glob)
  const claims = new Map<string, Set<string>>()
  for (const entry of policy.claims) {
    const cut = entry.lastIndexOf('=')
    const gpu = entry.slice(0, cut)
    claims.set(gpu, (claims.get(gpu) ?? new Set()).add(entry.slice(cut + 1)))
  }
  const written = users.size + commands.length + containers.length > 0
  return (info, gpuId, gpuLabel) => {
    if (info === null) return 'unknown'
    if (isService(info)) return 'allowed'
    if (commandsOf(info).some((command) => commands.some((matches) => matches(command)))) return 'allowed'
    const owners = claims.get(gpuId) ?? (gpuLabel === null ? undefined : claims.get(gpuLabel))
    if (owners && info.user !== null) return owners.has(info.user) ? 'allowed' : 'forbidden'
    if (!written) return 'unknown'
    if (info.user !== null && users.has(info.user)) return 'allowed'
    const container = info.container
    if (container !== null && containers.some((matches) => matches(container))) return 'allowed'
    // Only facts that could be read count against a process.
    if (users.size > 0 && info.user === null) return 'unknown'
    return users.size === 0 && containers.length === 0 && info.executable === null && info.name === null ? 'unknown' : 'forbidden'
  }
}

function commandsOf(info: ProcessInfo): string[] {
  const all = [info.name, info.executable, info.command?.[0] ?? null].filter((one): one is string => one !== null)
  for (const path of [info.executable, info.command?.[0]]) if (path?.includes('/')) all.push(path.slice(path.lastIndexOf('/') + 1))
  return all
}

/** Identity is who runs what where, not the PID. */
export function identityOf(info: ProcessInfo): string {
  return `${info.user ?? '?'}|${info.executable ?? info.name ?? '?'}|${info.container ?? ''}`
}
