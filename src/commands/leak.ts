import type { Config } from '../agent/config.ts'
import { EXIT } from '../core/failure.ts'
import { formatDuration } from '../core/format.ts'
import { leak as leakKind } from '../detectors/leak.ts'
import { checkedMegabytes, DEFAULT_LEAK_THRESHOLD_MB } from '../library/leak-detector.ts'
import { leakText } from '../report/leak-text.ts'
import { LeakVerdicts, leakRecord } from '../report/leak-verdicts.ts'
import { writeOut } from './output.ts'
import { devicesOf, readNumber, watchMemory } from './watch-memory.ts'

const DEFAULT_SECONDS = 60
const MEBIBYTE = 1024 ** 2

export async function leak(config: Config, options: Record<string, unknown>): Promise<number> {
  const isMonitor = options.monitor === true
  const isJson = options.json === true
  const megabytes = readNumber(options.threshold, '--threshold', DEFAULT_LEAK_THRESHOLD_MB, checkedMegabytes)
  let judge: LeakVerdicts | null = null
  const { seconds, isSimulated } = await watchMemory({
    config,
    options,
    defaultSeconds: isMonitor ? 0 : DEFAULT_SECONDS,
    doing: 'watching for leaks',
    kinds: [leakKind],
    observers: (print) => {
      judge = new LeakVerdicts({
        thresholdBytes: megabytes * MEBIBYTE,
        devices: devicesOf(config),
        onLeak: (verdict) => {
          if (isMonitor) print(isJson ? JSON.stringify(leakRecord(verdict)) : leakText(verdict))
        },
      })
      return [judge]
    },
  })
  const verdicts = (judge as LeakVerdicts | null)?.verdicts() ?? []
  const isLeaking = verdicts.some((verdict) => verdict.answer === 'leak')
  if (!isMonitor) {
    if (isJson)
      writeOut(
        `${JSON.stringify({ watched_seconds: seconds, threshold_mb: megabytes, leak: isLeaking, verdicts: verdicts.map(leakRecord) }, null, 2)}\n`,
      )
    else {
      const head = `${isSimulated ? 'These GPUs are SIMULATED. ' : ''}Watched for ${formatDuration(seconds * 1000)}; growth below ${megabytes} MB does not count as a leak.`
      writeOut(`${[head, ...verdicts.map(leakText)].join('\n')}\n`)
    }
  }
  return isLeaking ? EXIT.checkFailed : EXIT.ok
}
