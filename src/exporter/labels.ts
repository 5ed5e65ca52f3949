/** Label text that no device name, user name or program name can break: bounded, without control characters, escaped. */
import type { GpuInfo, Provenance } from '../core/model.ts'

const MAX_LENGTH = 128
const UNSAFE = /[\p{Cc}\p{Cs}\\"]/u
const EVERY_UNSAFE = /[\p{Cc}\p{Cs}\\"]/gu

function replacement(character: string): string {
  switch (character) {
    case '\\':
      return '\\\\'
    case '"':
      return '\\"'
    case '\n':
      return '\\n'
    default:
      return '\uFFFD'
  }
}

export function labelValue(text: string): string {
  const short = text.length > MAX_LENGTH ? text.slice(0, MAX_LENGTH) : text
  return UNSAFE.test(short) ? short.replace(EVERY_UNSAFE, replacement) : short
}

/** `a="1",b="2"` in the order given; a null value leaves its label out. */
export function pairs(labels: Readonly<Record<string, string | number | null>>): string {
  let text = ''
  for (const name in labels) {
    const value = labels[name]
    if (value === null || value === undefined) continue
    text += `${text === '' ? '' : ','}${name}="${typeof value === 'number' ? value : labelValue(value)}"`
  }
  return text
}

export function joinPairs(first: string, second: string): string {
  return first === '' ? second : second === '' ? first : `${first},${second}`
}

/** What sets simulated and replayed values apart from measured ones; nothing for live data. */
export function provenancePairs(provenance: Provenance): string {
  return provenance === 'simulated' ? 'simulated="true"' : provenance === 'replay' ? 'replay="true"' : ''
}

/** The labels of the native set. */
export function nativePairs(info: GpuInfo): string {
  const identity = pairs({ gpu: info.label, uuid: info.id, name: info.name, vendor: info.vendor })
  return joinPairs(identity, provenancePairs(info.provenance))
}

/** The start of a series' line, up to its value. */
export function seriesPrefix(name: string, labelPairs: string): string {
  return labelPairs === '' ? `${name} ` : `${name}{${labelPairs}} `
}
