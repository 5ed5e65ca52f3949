/** Labels that no device name, user name or program name can break: bounded, without control characters, escaped where they are text. */
import type { Label } from '../core/metric-family.ts'
import type { GpuInfo, Provenance } from '../core/model.ts'

const MAX_LENGTH = 128
const UNSAFE = /[\p{Cc}\p{Cs}\\"]/u
const UNPRINTABLE = /[^\P{Cc}\n]|\p{Cs}/gu
const QUOTED = /[\\"\n]/g

/** What a label says: no longer than a label may be, without what no receiver could print. */
export function labelText(text: string): string {
  const short = text.length > MAX_LENGTH ? text.slice(0, MAX_LENGTH) : text
  return UNSAFE.test(short) ? short.replace(UNPRINTABLE, '\uFFFD') : short
}

/** The same as it stands between quotes. Nearly every text is safe, and to find that out is what costs: once is enough. */
export function labelValue(text: string): string {
  const short = text.length > MAX_LENGTH ? text.slice(0, MAX_LENGTH) : text
  if (!UNSAFE.test(short)) return short
  return short.replace(UNPRINTABLE, '\uFFFD').replace(QUOTED, (character) => (character === '\n' ? '\\n' : `\\${character}`))
}

/** A null value leaves its label out. */
type Given = Readonly<Record<string, string | number | null>>

export class Labels {
  /** `a="1",b="2"`, as a page has them. */
  readonly text: string
  readonly #given: Given | readonly [Labels, Labels]
  #list: readonly Label[] | null = null

  private constructor(text: string, given: Given | readonly [Labels, Labels]) {
    this.text = text
    this.#given = given
  }

  static of(given: Given): Labels {
    let text = ''
    for (const name in given) {
      const value = given[name]
      if (value === null || value === undefined) continue
      text += `${text === '' ? '' : ','}${name}="${typeof value === 'number' ? value : labelValue(value)}"`
    }
    return new Labels(text, given)
  }

  and(more: Labels): Labels {
    if (this.text === '') return more
    return more.text === '' ? this : new Labels(`${this.text},${more.text}`, [this, more])
  }

  /** Worked out for those who want no text, and once where the labels are kept. */
  list(): readonly Label[] {
    this.#list ??= this.#entries()
    return this.#list
  }

  #entries(): readonly Label[] {
    const given = this.#given
    if (isJoined(given)) return [...given[0].list(), ...given[1].list()]
    return Object.entries(given).flatMap(([name, value]): Label[] =>
      value === null ? [] : [[name, typeof value === 'number' ? String(value) : labelText(value)]],
    )
  }
}

function isJoined(given: Given | readonly [Labels, Labels]): given is readonly [Labels, Labels] {
  return Array.isArray(given)
}

export const NO_LABELS = Labels.of({})

/** Figures by their labels, of which each set stands once: two that look alike once they are labels become one. */
export class Figures {
  readonly #byText = new Map<string, { readonly labels: Labels; readonly value: number }>()

  add(labels: Labels, value: number, combine: (before: number, now: number) => number): void {
    const before = this.#byText.get(labels.text)
    this.#byText.set(labels.text, { labels, value: before === undefined ? value : combine(before.value, value) })
  }

  emit(emit: (labels: Labels, value: number) => void): void {
    for (const { labels, value } of this.#byText.values()) emit(labels, value)
  }
}

export function sum(a: number, b: number): number {
  return a + b
}

const OF_PROVENANCE: Readonly<Record<Provenance, Labels>> = {
  live: NO_LABELS,
  simulated: Labels.of({ simulated: 'true' }),
  replay: Labels.of({ replay: 'true' }),
}

/** What sets simulated and replayed values apart from measured ones; nothing for live data. */
export function provenanceLabels(provenance: Provenance): Labels {
  return OF_PROVENANCE[provenance]
}

export function nativeLabels(info: GpuInfo): Labels {
  return Labels.of({ gpu: info.label, uuid: info.id, name: info.name, vendor: info.vendor }).and(provenanceLabels(info.provenance))
}
