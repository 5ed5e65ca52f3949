/** What changed from one snapshot to another, in words. */
import { formatBytes } from '../../core/format.ts'
import type { DeviceAnalysis } from '../verdict/device-analysis.ts'
import type { Diff, StackChange } from '../verdict/diff.ts'
import { counted, fitted, signedSize, WIDTH } from './words.ts'

const MOST_ROWS = 15
const INNER_FRAMES = 3

export function diffText(diff: Diff, minBytes: number): string {
  const rows = diff.stacks.filter(({ deltaBytes }) => Math.abs(deltaBytes) >= minBytes)
  const lines = [`${formatBytes(diff.beforeBytes)} before, ${formatBytes(diff.afterBytes)} after: ${signedSize(diff.deltaBytes)}`]
  if (rows.length === 0)
    return [...lines, minBytes > 0 && diff.stacks.length > 0 ? 'Nothing of that size differs.' : 'Nothing differs.'].join('\n')
  lines.push('')
  for (const row of rows.slice(0, MOST_ROWS)) lines.push(...changeLines(row))
  if (rows.length > MOST_ROWS) lines.push(`  and ${counted(rows.length - MOST_ROWS, 'stack')} more (--json lists all)`)
  const categories = diff.categories.filter(({ beforeBytes, afterBytes }) => beforeBytes !== afterBytes)
  lines.push(
    '',
    `By category: ${categories.map(({ name, beforeBytes, afterBytes }) => `${name.replace('_', ' ')} ${signedSize(afterBytes - beforeBytes)}`).join(', ')}`,
  )
  return lines.join('\n')
}

function changeLines({ change, line, before, after, deltaBytes, stack }: StackChange): string[] {
  const head = `${signedSize(deltaBytes).padStart(10)}  ${change.padEnd(6)}  `
  const blocks = before.blocks === after.blocks ? counted(after.blocks, 'block') : `${before.blocks} → ${counted(after.blocks, 'block')}`
  const lines = [`${head}${fitted(line, WIDTH - head.length - blocks.length - 4)}  (${blocks})`]
  const inner = stack.slice(-INNER_FRAMES).filter((frame) => !line.includes(frame))
  if (stack.length > 2) lines.push(`${' '.repeat(head.length)}${fitted(inner.join(' > '), WIDTH - head.length)}`)
  return lines
}

/** What makes the two hard to compare. */
export function diffWarnings(before: DeviceAnalysis, after: DeviceAnalysis): string[] {
  const warnings: string[] = []
  const steps = ({ steps: { ends, source } }: DeviceAnalysis) => (source === 'equal parts' ? null : ends.length)
  const [old, young] = [steps(before), steps(after)]
  if (old !== null && young !== null && old !== young) warnings.push(`the first file covers ${counted(old, 'step')}, the second ${young}`)
  const named = ({ steps: { name } }: DeviceAnalysis) => name
  if (named(before) !== named(after))
    warnings.push(`steps are marked by ${named(before) ?? 'nothing'} in the first, by ${named(after) ?? 'nothing'} in the second`)
  return warnings
}
