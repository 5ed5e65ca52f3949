/** Stacks with what they hold, one a line, as flame graph tools read them: `outer;inner;innermost BYTES`. */
import type { DeviceAnalysis } from '../verdict/device-analysis.ts'
import { type Holding, lineOf } from '../verdict/live-set.ts'

export function foldedStacks(analysis: DeviceAnalysis, holdings: readonly Holding[], minBytes: number): string[] {
  const sums = new Map<string, number>()
  for (const holding of holdings) {
    const isNameless = holding.origin === 'freed'
    const frames = isNameless ? [lineOf(holding, analysis.words)] : analysis.words.of(holding.stack).folded
    const folded = frames.map(plain).join(';')
    sums.set(folded, (sums.get(folded) ?? 0) + holding.bytes)
  }
  return [...sums]
    .filter(([, bytes]) => bytes >= minBytes)
    .sort(([, a], [, b]) => b - a)
    .map(([stack, bytes]) => `${stack} ${bytes}`)
}

/** A frame holds neither the separator nor the end of the line. */
function plain(frame: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out
  return frame.replace(/;/g, ',').replace(/[\u0000-\u001f\u007f]+/g, ' ')
}
