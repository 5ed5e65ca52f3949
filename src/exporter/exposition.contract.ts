/** A strict reader of the exposition formats: it throws at the first thing that a scraper might not take. */
import type { Format } from './metric.ts'

export interface Series {
  readonly family: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Exposition {
  readonly types: ReadonlyMap<string, string>
  readonly series: readonly Series[]
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/
const NUMBER = /^(?:NaN|[+-]Inf|-?\d+(?:\.\d+)?(?:e[+-]\d+)?)$/
const SUFFIXES: Readonly<Record<string, readonly string[]>> = { histogram: ['_bucket', '_sum', '_count'] }

function fail(line: string, why: string): never {
  throw new Error(`${why}: ${JSON.stringify(line)}`)
}

function readLabels(line: string, from: number): { readonly labels: Record<string, string>; readonly end: number } {
  const labels: Record<string, string> = {}
  let at = from
  while (line[at] !== '}') {
    const equals = line.indexOf('="', at)
    const name = equals < 0 ? '' : line.slice(at, equals)
    if (!LABEL_NAME.test(name)) fail(line, 'bad label name')
    if (name in labels) fail(line, `label ${name} twice`)
    let value = ''
    for (at = equals + 2; line[at] !== '"'; at++) {
      const character = line[at] ?? fail(line, 'label value without end')
      if (character !== '\\') {
        value += character
        continue
      }
      const escaped = line[++at] ?? ''
      value += { n: '\n', '\\': '\\', '"': '"' }[escaped] ?? fail(line, 'unknown escape')
    }
    if (value.length > 128) fail(line, 'label value too long')
    if (/[^\P{Cc}\n]|\p{Cs}/u.test(value)) fail(line, 'control character or half a character in a label value')
    labels[name] = value
    at++
    if (line[at] === ',') at++
    else if (line[at] !== '}') fail(line, 'expected , or } after a label')
  }
  return { labels, end: at + 1 }
}

function readSeries(line: string): Omit<Series, 'family'> {
  const brace = line.indexOf('{')
  const space = line.indexOf(' ')
  const hasLabels = brace >= 0 && brace < space
  const name = line.slice(0, hasLabels ? brace : space)
  if (!NAME.test(name)) fail(line, 'bad metric name')
  const { labels, end } = hasLabels ? readLabels(line, brace + 1) : { labels: {}, end: space }
  if (line[end] !== ' ') fail(line, 'expected a space before the value')
  const text = line.slice(end + 1)
  if (!NUMBER.test(text)) fail(line, 'bad value')
  return { name, labels, value: Number(text.replace('Inf', 'Infinity')) }
}

export function readExposition(text: string, format: Format = 'text'): Exposition {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const lines = text.slice(0, -1).split('\n')
  if (format === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('expected # EOF as the last line')
  const types = new Map<string, string>()
  const helps = new Set<string>()
  const keys = new Set<string>()
  const series: Series[] = []
  let family = ''
  for (const line of lines) {
    const comment = /^# (HELP|TYPE|UNIT) (\S+) (.+)$/.exec(line)
    if (comment !== null) {
      const [, kind, name = '', rest = ''] = comment
      if (name !== family && (types.has(name) || helps.has(name))) fail(line, 'a family in two places')
      family = name
      if (kind === 'UNIT' && !(format === 'openmetrics' && name.endsWith(`_${rest}`))) fail(line, 'bad unit')
      if (kind === 'HELP') helps.has(name) ? fail(line, 'HELP twice') : helps.add(name)
      if (kind === 'TYPE') types.has(name) ? fail(line, 'TYPE twice') : types.set(name, rest)
      continue
    }
    const one = readSeries(line)
    const type = types.get(family) ?? fail(line, 'a series before its TYPE')
    if (!helps.has(family)) fail(line, 'a series before its HELP')
    const suffixes = SUFFIXES[type] ?? [format === 'openmetrics' && type === 'counter' ? '_total' : '']
    if (!suffixes.some((suffix) => one.name === family + suffix)) fail(line, `a series outside its family ${family}`)
    const key = `${one.name} ${JSON.stringify(Object.entries(one.labels).sort())}`
    if (keys.has(key)) fail(line, 'the same series twice')
    keys.add(key)
    if (type === 'counter' && !(one.value >= 0)) fail(line, 'a counter below zero')
    series.push({ family, ...one })
  }
  return { types, series }
}
