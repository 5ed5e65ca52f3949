/** The memory limit that a process runs under (cgroups v2 and v1), and how much of it is used without what the kernel could drop. */
import { join } from 'node:path'
import type { MemoryLimit, Reading } from '../../core/model.ts'
import { tryReadSmallFile } from '../small-file.ts'

const LIMITS_EVERY_MS = 30_000
const MOST_GROUPS = 256
const DEEPEST = 16
/** What v1 says where there is none. */
const NO_LIMIT = 2 ** 60

interface Group {
  readonly folder: string
  readonly isV2: boolean
  readonly limitBytes: number
  readonly swapLimitBytes: number
}

interface Known {
  readonly group: Group | null
  readonly dueMs: number
}

export class MemoryGroups {
  readonly #root: string
  /** By the text of /proc/PID/cgroup. */
  readonly #known = new Map<string, Known>()

  constructor(root: string) {
    this.#root = root
  }

  /** null: none that is tighter than the machine's own memory. */
  limitOf(pid: number, memoryTotalBytes: Reading, nowMs: number): MemoryLimit | null {
    const membership = tryReadSmallFile(`${join(this.#root, 'proc')}/${pid}/cgroup`)
    if (membership === null) return null
    let known = this.#known.get(membership)
    if (!known || nowMs >= known.dueMs) {
      if (this.#known.size >= MOST_GROUPS) this.#known.clear()
      known = { group: tightest(groupsOf(this.#root, membership), memoryTotalBytes ?? NO_LIMIT), dueMs: nowMs + LIMITS_EVERY_MS }
      this.#known.set(membership, known)
    }
    return known.group === null ? null : usageOf(known.group)
  }
}

/** The groups around a process, from its own outwards. */
function groupsOf(root: string, membership: string): Group[] {
  for (const line of membership.split('\n')) {
    const [number, controllers, ...rest] = line.split(':')
    const path = rest.join(':')
    const isV2 = number === '0' && controllers === ''
    if (!path.startsWith('/') || path.includes('..') || (!isV2 && !controllers?.split(',').includes('memory'))) continue
    const base = join(root, isV2 ? 'sys/fs/cgroup' : 'sys/fs/cgroup/memory')
    const parts = path.split('/').filter((part) => part !== '')
    const groups: Group[] = []
    for (let depth = parts.length; depth >= 0 && groups.length < DEEPEST; depth--) {
      const folder = join(base, ...parts.slice(0, depth))
      const limitBytes = numberIn(`${folder}/${isV2 ? 'memory.max' : 'memory.limit_in_bytes'}`)
      if (limitBytes === null) continue
      // v1 counts both together.
      const together = isV2 ? null : numberIn(`${folder}/memory.memsw.limit_in_bytes`)
      const swap = isV2 ? numberIn(`${folder}/memory.swap.max`) : together === null ? null : together - limitBytes
      groups.push({ folder, isV2, limitBytes, swapLimitBytes: swap === null || swap >= NO_LIMIT ? 0 : Math.max(0, swap) })
    }
    if (groups.length > 0) return groups
  }
  return []
}

function tightest(groups: readonly Group[], memoryTotalBytes: number): Group | null {
  let best: Group | null = null
  for (const group of groups) if (group.limitBytes < (best?.limitBytes ?? memoryTotalBytes)) best = group
  return best
}

function usageOf({ folder, isV2, limitBytes, swapLimitBytes }: Group): MemoryLimit | null {
  const used = numberIn(`${folder}/${isV2 ? 'memory.current' : 'memory.usage_in_bytes'}`)
  const stat = tryReadSmallFile(`${folder}/memory.stat`)
  if (used === null || stat === null) return null
  const of = (name: string) => Number(new RegExp(`^${isV2 ? '' : 'total_'}${name} (\\d{1,15})$`, 'm').exec(stat)?.[1] ?? 0)
  // Files in the cache are dropped before anything is killed; shared memory is not among them.
  const held = Math.max(0, used - of('inactive_file') - of('active_file'))
  const swapped = isV2 ? (numberIn(`${folder}/memory.swap.current`) ?? 0) : of('swap')
  return { usedBytes: held + swapped, limitBytes: limitBytes + swapLimitBytes }
}

/** `max` is no limit. */
function numberIn(file: string): Reading {
  const text = tryReadSmallFile(file)?.trim()
  if (text === undefined) return null
  return /^\d{1,19}$/.test(text) ? Number(text) : text === 'max' ? NO_LIMIT : null
}
