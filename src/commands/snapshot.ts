/** `gpuwarden snapshot`: what a PyTorch memory snapshot says, or how two of them differ. */
import { basename } from 'node:path'
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { diffText, diffWarnings } from '../snapshot/output/diff-text.ts'
import { foldedStacks } from '../snapshot/output/folded.ts'
import { deviceJson, diffJson, fileJson, type Json } from '../snapshot/output/json.ts'
import { summaryText } from '../snapshot/output/summary-text.ts'
import { fitted, momentText } from '../snapshot/output/words.ts'
import type { DeviceAnalysis } from '../snapshot/verdict/device-analysis.ts'
import { diffOf } from '../snapshot/verdict/diff.ts'
import { indexOf, nameOf } from '../snapshot/verdict/moment.ts'
import { pairsOf } from '../snapshot/verdict/pairs.ts'
import { type OpenedSnapshot, openSnapshot } from './open-snapshot.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'
import { writeSnapshotHtml } from './snapshot-html.ts'
import { readRequest, type SnapshotRequest } from './snapshot-options.ts'

export async function snapshot(config: Config, options: Record<string, unknown>, args: readonly string[]): Promise<number> {
  endWhenPipeCloses()
  const [first, second, ...rest] = args
  if (first === undefined || rest.length > 0)
    throw new Failure(`give one snapshot file, or two to compare, or --run; got ${args.length}`, { exitCode: EXIT.usage })
  const live = ['steps', 'rank', 'host'].find((name) => options[name] !== undefined)
  if (live !== undefined) throw new Failure(`--${live} goes with --run`, { exitCode: EXIT.usage })
  const outputs = [options.json, options.text, options.folded].filter((one) => one === true)
  if (outputs.length > 1) throw new Failure('--json, --text and --folded exclude each other', { exitCode: EXIT.usage })
  const request = readRequest(config, options)
  const opened = await openSnapshot(first, request)
  const other = second === undefined ? null : await openSnapshot(second, request)
  if (typeof options.html === 'string') {
    await writeSnapshotHtml(options.html, opened, other, request)
    if (outputs.length === 0) return EXIT.ok
  }
  const write = options.json === true ? printJson : options.folded === true ? printFolded : printText
  if (other === null) write(opened, request)
  else if (options.folded === true) throw new Failure('--folded takes one file', { exitCode: EXIT.usage })
  else compare(opened, other, request, options.json === true)
  return EXIT.ok
}

function printText(opened: OpenedSnapshot, request: SnapshotRequest): void {
  const parts = opened.analyses.map((analysis) =>
    summaryText({ analysis, moment: momentOf(analysis, request), minBytes: request.minBytes, limitBytes: limitOf(analysis, request) }),
  )
  writeOut(`${[...opened.notes, ...parts].join('\n\n')}\n`)
}

function printJson(opened: OpenedSnapshot, request: SnapshotRequest): void {
  const devices = opened.analyses.map((analysis) => deviceJson(analysis, momentOf(analysis, request), request.minBytes))
  writeJson({ ...(fileJson(opened.path, opened.snapshot) as Record<string, Json>), devices })
}

function printFolded(opened: OpenedSnapshot, request: SnapshotRequest): void {
  for (const analysis of opened.analyses) {
    const lines = foldedStacks(analysis, analysis.liveAt(momentOf(analysis, request).index), request.minBytes)
    writeOut(lines.map((line) => `${line}\n`).join(''))
  }
}

function compare(before: OpenedSnapshot, after: OpenedSnapshot, request: SnapshotRequest, isJson: boolean): void {
  const pairs = pairsOf(before.analyses, after.analyses)
  const compared = pairs.map(([old, young]) => {
    const [from, to] = [momentOf(old, request), momentOf(young, request)]
    return { old, young, from, to, diff: diffOf(old, from.index, young, to.index), warnings: diffWarnings(old, young) }
  })
  if (isJson) {
    const devices = compared.map(({ old, young, from, diff, warnings }) => ({
      device_before: old.device.index,
      device_after: young.device.index,
      at: from.name,
      warnings,
      ...(diffJson(diff) as Record<string, Json>),
    }))
    writeJson({ before: fileJson(before.path, before.snapshot), after: fileJson(after.path, after.snapshot), devices })
    return
  }
  const parts = compared.map(({ old, young, from, to, diff, warnings }) =>
    [
      `GPU ${young.device.index} at ${from.name}, ${fitted(basename(before.path), 40)} → ${fitted(basename(after.path), 40)}`,
      `  ${momentText(from.index, old.device.trace.time(from.index), old.device.trace.time(0))}`,
      `  ${momentText(to.index, young.device.trace.time(to.index), young.device.trace.time(0))}`,
      ...warnings.map((warning) => `Careful: ${warning}.`),
      diffText(diff, request.minBytes),
    ].join('\n'),
  )
  writeOut(`${[...before.notes, ...after.notes, ...parts].join('\n\n')}\n`)
}

export function momentOf(analysis: DeviceAnalysis, { moment }: SnapshotRequest): { index: number; name: string } {
  return { index: indexOf(moment, analysis.device.trace, analysis.curve.peak.index), name: nameOf(moment) }
}

export function limitOf(analysis: DeviceAnalysis, { analysis: { deviceBytes } }: SnapshotRequest): number | null {
  return deviceBytes ?? analysis.limitBytes
}

export function writeJson(value: Json): void {
  writeOut(`${JSON.stringify(value, null, 2)}\n`)
}
