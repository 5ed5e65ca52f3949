/** Which container, pod or batch job a process belongs to, from /proc/PID/cgroup. */

export interface Membership {
  readonly container: string | null
  readonly pod: string | null
  readonly slurmJob: string | null
}

export const NO_MEMBERSHIP: Membership = { container: null, pod: null, slurmJob: null }

const HASH = /^[0-9a-f]{64}$/

/** How runtimes name a systemd scope: `docker-HASH.scope`, `cri-containerd-HASH.scope` … */
const SCOPES: readonly (readonly [RegExp, string])[] = [
  [/^docker-([0-9a-f]{64})\.scope$/, 'docker'],
  [/^libpod-(?:payload-)?([0-9a-f]{64})(?:\.scope)?$/, 'podman'],
  [/^cri-containerd-([0-9a-f]{64})\.scope$/, 'containerd'],
  [/^nerdctl-([0-9a-f]{64})\.scope$/, 'containerd'],
  [/^crio-([0-9a-f]{64})(?:\.scope)?$/, 'crio'],
  [/^lxc\.payload\.(.+)$/, 'lxc'],
]

/** Folders that hold containers by their bare hash or name, with whose they are. */
const FOLDERS: ReadonlyMap<string, string> = new Map([
  ['docker', 'docker'],
  ['lxc', 'lxc'],
  ['lxc.payload', 'lxc'],
  ['k8s.io', 'containerd'],
  ['containerd', 'containerd'],
])

/** Lines of v1 are `4:memory:/path`, the one of v2 is `0::/path`; the first useful one counts. */
export function parseCgroup(text: string): Membership {
  let { container, pod, slurmJob } = NO_MEMBERSHIP
  for (const line of text.split('\n')) {
    const match = /^\d+:[^:]*:(\/.*)$/.exec(line)
    if (match?.[1] === undefined || match[1] === '/') continue
    const parts = match[1].split('/').slice(1)
    pod ??= findPod(parts)
    container ??= findContainer(parts)
    slurmJob ??= findSlurmJob(parts)
  }
  return { container, pod, slurmJob }
}

function findContainer(parts: readonly string[]): string | null {
  for (let at = parts.length - 1; at >= 0; at--) {
    const part = parts[at] ?? ''
    for (const [pattern, runtime] of SCOPES) {
      const id = pattern.exec(part)?.[1]
      if (id !== undefined) return `${runtime}:${id}`
    }
    const runtime = FOLDERS.get(parts[at - 1] ?? '')
    if (runtime !== undefined && (HASH.test(part) || (runtime === 'lxc' && part !== ''))) return `${runtime}:${part}`
    // A pod's containers without a scope: the runtime is not named, and is containerd where it is not Docker.
    if (HASH.test(part) && parts.some((one) => one.startsWith('kubepods'))) return `containerd:${part}`
    // containerd in a slice writes `system.slice:cri-containerd:HASH` or `kubepods-….slice:cri-containerd:HASH` as one name.
    const colons = /:(cri-containerd|crio):([0-9a-f]{64})$/.exec(part)
    if (colons !== null) return `${colons[1] === 'crio' ? 'crio' : 'containerd'}:${colons[2]}`
  }
  return null
}

const POD_UID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** A pod of a manifest on disk has a hash of the manifest instead. */
const STATIC_POD_UID = /^[0-9a-f]{32}$/

/** `kubepods/burstable/podUID` and `kubepods-burstable-podUID.slice`, where a slice has underscores for dashes. */
function findPod(parts: readonly string[]): string | null {
  if (!parts.some((part) => part.startsWith('kubepods') || part.startsWith('kubelet-kubepods'))) return null
  for (const part of parts) {
    const match = /(?:^|-)pod([0-9a-f_-]{32,36})(?:\.slice.*)?$/.exec(part)
    const uid = match?.[1]?.replaceAll('_', '-')
    if (uid !== undefined && (POD_UID.test(uid) || STATIC_POD_UID.test(uid))) return uid
  }
  return null
}

/** `slurm/uid_1000/job_123/step_0` (v1, with `slurm_HOST` where several share a tree) and `slurmstepd.scope/job_123/…` (v2). */
function findSlurmJob(parts: readonly string[]): string | null {
  if (!parts.some((part) => part === 'slurm' || part.startsWith('slurm_') || /^(?:.+_)?slurmstepd\.scope$/.test(part))) return null
  for (const part of parts) {
    const job = /^job_(\d{1,12})$/.exec(part)?.[1]
    if (job !== undefined) return job
  }
  return null
}
