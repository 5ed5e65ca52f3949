/** What was in use at a moment as a tree of calls, outermost first. What is too small to be seen is summed up beside its neighbors. */
import type { FlameNode } from '../../core/memory/snapshot-picture.ts'
import { EMPTY_STACK, NO_STACK } from '../read/stack-table.ts'
import type { DeviceAnalysis } from '../verdict/device-analysis.ts'
import { type Holding, lineOf } from '../verdict/live-set.ts'

const LEAST_RATIO = 0.0005
const MOST_NODES = 3000
const MOST_DEPTH = 100

interface Growing {
  readonly name: string
  bytes: number
  readonly children: Map<string, Growing>
}

export function flameOf(analysis: DeviceAnalysis, holdings: readonly Holding[]): FlameNode {
  const root: Growing = { name: 'all', bytes: 0, children: new Map() }
  for (const holding of holdings) {
    const { bytes, stack, origin } = holding
    const isNameless = origin === 'freed' || stack === NO_STACK || stack === EMPTY_STACK
    const frames = isNameless ? [lineOf(holding, analysis.words)] : analysis.words.of(stack).folded
    root.bytes += bytes
    let node = root
    for (const name of frames.slice(0, MOST_DEPTH)) {
      let child = node.children.get(name)
      if (child === undefined) {
        child = { name, bytes: 0, children: new Map() }
        node.children.set(name, child)
      }
      child.bytes += bytes
      node = child
    }
  }
  return pruned(root, leastBytes(root))
}

/** So that the tree stays small whatever the file holds. */
function leastBytes(root: Growing): number {
  const sizes: number[] = []
  const open = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    sizes.push(node.bytes)
    open.push(...node.children.values())
  }
  sizes.sort((a, b) => b - a)
  return Math.max(root.bytes * LEAST_RATIO, 1, (sizes[MOST_NODES] ?? 0) + 1)
}

function pruned({ name, bytes, children }: Growing, least: number): FlameNode {
  const all = [...children.values()].sort((a, b) => b.bytes - a.bytes)
  const shown = all.filter((child) => child.bytes >= least)
  const rest = all.slice(shown.length)
  const kept = shown.map((child) => pruned(child, least))
  const restBytes = rest.reduce((sum, child) => sum + child.bytes, 0)
  if (restBytes >= least) kept.push({ name: `${rest.length} smaller`, bytes: restBytes, children: [] })
  return { name, bytes, children: kept }
}
