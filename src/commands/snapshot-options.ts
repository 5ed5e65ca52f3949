/** What the commands that read snapshot files can be asked for. */
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { CATEGORIES, type Category, type CategoryRule } from '../snapshot/verdict/categories.ts'
import type { AnalysisOptions } from '../snapshot/verdict/device-analysis.ts'
import { type Moment, readMoment } from '../snapshot/verdict/moment.ts'
import { devicesOf } from './watch-memory.ts'

export interface SnapshotRequest {
  readonly moment: Moment
  readonly minBytes: number
  readonly devices: ReadonlySet<number> | null
  readonly analysis: AnalysisOptions
}

const UNITS: Readonly<Record<string, number>> = { '': 1, B: 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

export function readRequest(config: Config, options: Readonly<Record<string, unknown>>): SnapshotRequest {
  return {
    moment: readMoment(String(options.at ?? 'peak')),
    minBytes: options.min === undefined ? 0 : readSize(options.min, '--min'),
    // What the agent is configured to watch says nothing about a file.
    devices: config.origins.devices.from === 'flag' ? devicesOf(config) : null,
    analysis: {
      stream: options.stream === undefined ? undefined : readStream(options.stream),
      pool: options.pool === undefined ? undefined : readPool(options.pool),
      match: options.match === undefined ? undefined : readPattern(options.match, '--match'),
      deviceBytes: options.memory === undefined ? undefined : readSize(options.memory, '--memory'),
      categories: (Array.isArray(options.category) ? options.category : []).map(readRule),
    },
  }
}

/** `1MiB`, `80 GiB`, `512k`, `4096`: powers of 1024. */
export function readSize(given: unknown, flag: string): number {
  const [, amount, unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*([KMGT])?(?:i?B)?\s*$/i.exec(String(given)) ?? []
  const factor = UNITS[unit.toUpperCase()]
  if (amount !== undefined && factor !== undefined) return Math.round(Number(amount) * factor)
  throw new Failure(`${flag}: expected a size such as 1MiB or 80GiB; got ${JSON.stringify(given)}`, { exitCode: EXIT.usage })
}

function readStream(given: unknown): number {
  const stream = /^(?:\d+|0x[\da-f]+)$/i.test(String(given)) ? Number(given) : Number.NaN
  if (!Number.isNaN(stream)) return stream
  throw new Failure(`--stream: expected 0 or the number of a stream; got ${JSON.stringify(given)}`, { exitCode: EXIT.usage })
}

function readPool(given: unknown): string {
  const [, major, minor] = /^\(?(\d+)[.,]\s*(\d+)\)?$/.exec(String(given)) ?? []
  if (major !== undefined && minor !== undefined) return `${Number(major)}.${Number(minor)}`
  throw new Failure(`--pool: expected the two numbers of a pool, as 0.1; got ${JSON.stringify(given)}`, { exitCode: EXIT.usage })
}

function readPattern(given: unknown, flag: string): RegExp {
  try {
    return new RegExp(String(given))
  } catch (cause) {
    throw new Failure(`${flag}: ${(cause as Error).message}`, { exitCode: EXIT.usage, cause })
  }
}

function readRule(given: unknown): CategoryRule {
  const [name = '', ...pattern] = String(given).split('=')
  const category = name.replace('-', '_') as Category
  if (CATEGORIES.includes(category) && pattern.length > 0) return { category, match: readPattern(pattern.join('='), '--category') }
  throw new Failure(`--category: expected NAME=PATTERN with one of ${CATEGORIES.join(', ')}; got ${JSON.stringify(given)}`, {
    exitCode: EXIT.usage,
  })
}
