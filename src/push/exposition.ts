/** Reads back the page that the exporter writes, so that what is pushed is what would have been scraped. */

export type FamilyType = 'gauge' | 'counter' | 'histogram' | 'unknown'

export interface Series {
  readonly name: string
  /** As they are on the page: in their order, unescaped. */
  readonly labels: readonly (readonly [name: string, value: string])[]
  readonly value: number
  /** The line without its value: the same for the same series. */
  readonly key: string
}

export interface Family {
  readonly name: string
  readonly type: FamilyType
  readonly help: string
  readonly series: readonly Series[]
}

const TYPES: Readonly<Record<string, FamilyType>> = { gauge: 'gauge', counter: 'counter', histogram: 'histogram' }

/** Throws at a line that is not in format 0.0.4: it would be a fault of ours, and half a page must not be sent as a whole one. */
export function readPage(text: string): readonly Family[] {
  const families: { name: string; type: FamilyType; help: string; series: Series[] }[] = []
  let current: (typeof families)[number] | undefined
  let help = ''
  for (const line of text.split('\n')) {
    if (line === '') continue
    if (line.startsWith('# HELP ')) help = line.slice(line.indexOf(' ', 7) + 1)
    else if (line.startsWith('# TYPE ')) {
      const end = line.indexOf(' ', 7)
      current = { name: line.slice(7, end), type: TYPES[line.slice(end + 1)] ?? 'unknown', help, series: [] }
      families.push(current)
    } else if (!line.startsWith('#')) {
      if (current === undefined) throw new Error(`expected a # TYPE line before the first series; got ${JSON.stringify(line)}`)
      current.series.push(readSeries(line))
    }
  }
  return families
}

function readSeries(line: string): Series {
  const brace = line.indexOf('{')
  const space = line.indexOf(' ')
  const hasLabels = brace >= 0 && brace < space
  const name = line.slice(0, hasLabels ? brace : space)
  const { labels, end } = hasLabels ? readLabels(line, brace + 1) : { labels: [], end: space }
  const value = readNumber(line.slice(end + 1))
  if (space < 0 || value === null) throw new Error(`expected a series and its value; got ${JSON.stringify(line)}`)
  return { name, labels, value, key: line.slice(0, end) }
}

function readLabels(line: string, from: number): { labels: [string, string][]; end: number } {
  const labels: [string, string][] = []
  let at = from
  while (line[at] !== '}') {
    const equals = line.indexOf('="', at)
    if (equals < 0) throw new Error(`expected name="value" after position ${at}; got ${JSON.stringify(line)}`)
    const name = line.slice(at, equals)
    let close = equals + 2
    let escaped = false
    while (line[close] !== '"') {
      if (close >= line.length) throw new Error(`expected " at the end of label ${name}; got ${JSON.stringify(line)}`)
      if (line[close] === '\\') {
        escaped = true
        close++
      }
      close++
    }
    const value = line.slice(equals + 2, close)
    labels.push([name, escaped ? unescaped(value) : value])
    at = line[close + 1] === ',' ? close + 2 : close + 1
  }
  return { labels, end: at + 1 }
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character))
}

function readNumber(text: string): number | null {
  if (text === 'NaN') return Number.NaN
  if (text === '+Inf') return Number.POSITIVE_INFINITY
  if (text === '-Inf') return Number.NEGATIVE_INFINITY
  const value = text === '' ? Number.NaN : Number(text)
  return Number.isNaN(value) ? null : value
}
