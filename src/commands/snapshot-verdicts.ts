/** `gpuwarden leak FILE`, `frag FILE` and `oom FILE`: one verdict on a snapshot file, in full. */
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { fragmentationDetails } from '../snapshot/output/fragmentation-text.ts'
import { fileJson, type Json, snake } from '../snapshot/output/json.ts'
import { leakLines } from '../snapshot/output/leak-text.ts'
import { oomDetails } from '../snapshot/output/oom-text.ts'
import type { DeviceAnalysis } from '../snapshot/verdict/device-analysis.ts'
import { type OpenedSnapshot, openSnapshot } from './open-snapshot.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'
import { limitOf, writeJson } from './snapshot.ts'
import { readRequest, type SnapshotRequest } from './snapshot-options.ts'

type Options = Readonly<Record<string, unknown>>

export async function leakOfSnapshot(config: Config, options: Options, args: readonly string[]): Promise<number> {
  const { opened, request } = await open('leak', config, options, args, ['monitor', 'threshold', 'duration'])
  const isLeak = opened.analyses.some(({ leak }) => leak.answer === 'leak')
  const text = (analysis: DeviceAnalysis) => [
    `Leak: ${analysis.leak.answer}`,
    ...leakLines(analysis, limitOf(analysis, request), true).map(indented),
  ]
  print(opened, options, text, ({ leak }) => ({ leak: snake({ answer: leak.answer, marks: leak.marks, candidates: leak.candidates }) }))
  return isLeak ? EXIT.checkFailed : EXIT.ok
}

export async function fragOfSnapshot(config: Config, options: Options, args: readonly string[]): Promise<number> {
  const { opened } = await open('frag', config, options, args, ['run', 'duration'])
  const text = ({ fragmentation }: DeviceAnalysis) => fragmentationDetails(fragmentation)
  print(opened, options, text, ({ fragmentation }) => ({ fragmentation: snake(fragmentation) }))
  return EXIT.ok
}

export async function oomOfSnapshot(config: Config, options: Options, args: readonly string[]): Promise<number> {
  const { opened } = await open('oom', config, options, args, ['monitor', 'threshold', 'duration'])
  const found = new Map(
    opened.analyses.map((analysis) => [analysis, analysis.outOfMemoryEvents.slice(-1).map((event) => analysis.outOfMemory(event))]),
  )
  const text = (analysis: DeviceAnalysis) => {
    const lines = (found.get(analysis) ?? []).flatMap((one) => oomDetails(one, analysis.device.trace.time(0)))
    const more = analysis.outOfMemoryEvents.length - 1
    if (more > 0) lines.push('', `The last of ${more + 1}; events ${analysis.outOfMemoryEvents.slice(0, 10).join(', ')}.`)
    return lines.length > 0 ? lines : ['No out-of-memory in this file.']
  }
  print(opened, options, text, (analysis) => ({ out_of_memory: snake(found.get(analysis)) }))
  return [...found.values()].some((events) => events.length > 0) ? EXIT.checkFailed : EXIT.ok
}

/** `live`: options that make sense only while GPUs are watched. */
async function open(
  command: string,
  config: Config,
  options: Options,
  args: readonly string[],
  live: readonly string[],
): Promise<{ opened: OpenedSnapshot; request: SnapshotRequest }> {
  endWhenPipeCloses()
  const [path, ...rest] = args
  if (path === undefined || rest.length > 0)
    throw new Failure(`${command}: give one snapshot file; got ${args.length}`, { exitCode: EXIT.usage })
  const wrong = live.find((name) => options[name] !== undefined)
  if (wrong !== undefined)
    throw new Failure(`--${wrong} is for live GPUs and recordings, not for a snapshot file`, { exitCode: EXIT.usage })
  const request = readRequest(config, options)
  return { opened: await openSnapshot(path, request), request }
}

function print(
  { analyses, notes, path, snapshot }: OpenedSnapshot,
  options: Options,
  text: (analysis: DeviceAnalysis) => readonly string[],
  record: (analysis: DeviceAnalysis) => Readonly<Record<string, Json>>,
): void {
  if (options.json === true) {
    const devices = analyses.map((analysis) => ({ device: analysis.device.index, ...record(analysis) }))
    writeJson({ ...(fileJson(path, snapshot) as Record<string, Json>), devices })
    return
  }
  const parts = analyses.map((analysis) => [`GPU ${analysis.device.index}`, ...text(analysis)].join('\n'))
  writeOut(`${[...notes, ...parts].join('\n\n')}\n`)
}

function indented(line: string): string {
  return `  ${line}`
}
