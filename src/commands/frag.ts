import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { FragmentationBook } from '../report/fragmentation-report.ts'
import { fragmentationRecord, fragmentationText } from '../report/fragmentation-text.ts'
import { writeOut } from './output.ts'
import { devicesOf, watchMemory } from './watch-memory.ts'

const DEFAULT_SECONDS = 10

export async function frag(config: Config, options: Record<string, unknown>): Promise<number> {
  const book = new FragmentationBook(devicesOf(config))
  await watchMemory({
    config,
    options,
    defaultSeconds: DEFAULT_SECONDS,
    doing: 'listening for training steps',
    kinds: [],
    observers: () => [book],
  })
  const all = book.figures()
  const wanted = options.run === undefined ? null : String(options.run)
  const figures = wanted === null ? all : { ...all, runs: all.runs.filter((one) => one.run === wanted) }
  if (wanted !== null && figures.runs.length === 0)
    throw new Failure(`no allocator figures for run "${wanted}"`, {
      exitCode: EXIT.noSource,
      hint:
        all.runs.length === 0
          ? 'No other run reported any.'
          : `Runs with figures: ${[...new Set(all.runs.map((one) => one.run))].join(', ')}`,
    })
  const shown = wanted === null ? figures : { ...figures, devices: all.devices.filter((device) => device.runs.includes(wanted)) }
  writeOut(options.json === true ? `${JSON.stringify(fragmentationRecord(shown), null, 2)}\n` : `${fragmentationText(shown)}\n`)
  return EXIT.ok
}
