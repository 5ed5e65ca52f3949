/** A flame graph as boxes in rows: from the call that is looked at downwards, chains of calls that hold the same bytes as one. */
import type { FlameNode } from '../../../src/core/memory/snapshot-picture.ts'

export interface FlameBox {
  /** Positions of children from the root on: which call it is. */
  readonly path: readonly number[]
  /** The calls of the chain, outermost first. */
  readonly names: readonly string[]
  readonly bytes: number
  readonly depth: number
  /** Shares of the whole width. */
  readonly left: number
  readonly width: number
}

const LEAST_WIDTH = 0.003

export function flameBoxes(root: FlameNode, focus: readonly number[]): FlameBox[] {
  const boxes: FlameBox[] = []
  const place = (node: FlameNode, path: readonly number[], depth: number, left: number, width: number) => {
    if (width < LEAST_WIDTH) return
    const names = [node.name]
    let [last, at] = [node, path]
    while (last.children.length === 1 && last.children[0]?.bytes === last.bytes) {
      last = last.children[0]
      at = [...at, 0]
      names.push(last.name)
    }
    boxes.push({ path: at, names, bytes: node.bytes, depth, left, width })
    let x = left
    for (const [position, child] of last.children.entries()) {
      const share = node.bytes > 0 ? (child.bytes / node.bytes) * width : 0
      place(child, [...at, position], depth + 1, x, share)
      x += share
    }
  }
  place(nodeAt(root, focus), focus, 0, 0, 1)
  return boxes
}

/** The root where the path leads nowhere. */
export function nodeAt(root: FlameNode, path: readonly number[]): FlameNode {
  let node: FlameNode | undefined = root
  for (const position of path) node = node?.children[position]
  return node ?? root
}

/** The box to go to from another; the same where there is none. */
export function neighbor(boxes: readonly FlameBox[], from: FlameBox, key: string): FlameBox {
  const center = from.left + from.width / 2
  const row = (depth: number) => boxes.filter((box) => box.depth === depth)
  if (key === 'ArrowUp') return row(from.depth - 1).find(({ left, width }) => left <= center && center < left + width) ?? from
  if (key === 'ArrowDown')
    return (
      row(from.depth + 1)
        .filter(({ left }) => left >= from.left - 1e-9 && left < from.left + from.width)
        .sort((a, b) => b.width - a.width)[0] ?? from
    )
  const own = row(from.depth)
  return own[own.indexOf(from) + (key === 'ArrowRight' ? 1 : -1)] ?? from
}
