/** What is kept of the layers of a run, in bounded memory: every look at first, then every second, fourth … of them. */
import { type BrokenLayer, LAYER_FIGURE_NAMES, type LayerCourse, type LayerFigureName } from '../core/layer-figures.ts'
import type { NonFiniteLayer } from '../core/model.ts'
import { type LayerLook, MOST_LAYERS, readNonFinite } from './layer-line.ts'

const MOST_LOOKS = 128
/** The lowest; stages of a pipeline have different layers. */
const MOST_RANKS = 4

interface RankLayers {
  names: readonly string[]
  stride: number
  seen: number
  /** null: none yet. */
  brokeFirst: BrokenLayer | null
  looks: { readonly step: number; readonly at: number; readonly figures: ReadonlyMap<LayerFigureName, Float32Array> }[]
}

export class LayerHistory {
  readonly #ranks = new Map<number, RankLayers>()
  #hasChanged = false

  /** Ranks that sent figures of their layers, ascending. */
  get ranks(): readonly number[] {
    return [...this.#ranks.keys()].sort((a, b) => a - b)
  }

  /** How many layers the lowest rank has; 0: none were sent. */
  get count(): number {
    return this.#ranks.get(this.ranks[0] ?? -1)?.names.length ?? 0
  }

  add(rank: number, step: number, at: number, { names, figures }: LayerLook): void {
    let kept = this.#ranks.get(rank)
    if (!kept || kept.names.length !== names.length || kept.names.some((name, index) => name !== names[index])) {
      if (!kept && this.#ranks.size >= MOST_RANKS) {
        const highest = Math.max(...this.#ranks.keys())
        if (rank > highest) return
        this.#ranks.delete(highest)
      }
      kept = { names, stride: 1, seen: 0, brokeFirst: null, looks: [] }
      this.#ranks.set(rank, kept)
    }
    const { looks } = kept
    // A run that went back to a checkpoint, or steps that are read from the journal once more.
    while ((looks.at(-1)?.step ?? -1) >= step) looks.pop()
    if (kept.seen++ % kept.stride === 0 || isBroken(figures)) looks.push({ step, at, figures })
    if (looks.length >= MOST_LOOKS) thin(kept)
    // A gradient that overflowed once broke nothing.
    const isOver = kept.brokeFirst?.part === 'gradients' && !isBroken(figures)
    if (isOver || (kept.brokeFirst?.step ?? step) > step) kept.brokeFirst = null
    this.#hasChanged = true
  }

  /** The SDK found this layer to be the first that is not finite. */
  noteBroken(rank: number, step: number, found: NonFiniteLayer): void {
    const kept = this.#ranks.get(rank)
    if (!kept || kept.brokeFirst) return
    kept.brokeFirst = { ...found, step }
    this.#hasChanged = true
  }

  /** null: this rank sent none. */
  course(rank: number): (LayerCourse & { readonly at: readonly number[]; readonly stride: number }) | null {
    const kept = this.#ranks.get(rank)
    if (!kept) return null
    const { names, looks, stride, brokeFirst } = kept
    const values: Partial<Record<LayerFigureName, (number | null)[][]>> = {}
    for (const figure of LAYER_FIGURE_NAMES)
      if (looks.some(({ figures }) => figures.has(figure)))
        values[figure] = names.map((_, layer) => looks.map(({ figures }) => shown(figures.get(figure)?.[layer])))
    return { layers: names, steps: looks.map(({ step }) => step), at: looks.map(({ at }) => at), stride, values, brokeFirst }
  }

  /** As text for its file; null: nothing has changed since the last call. */
  takeChanged(): string | null {
    if (!this.#hasChanged) return null
    this.#hasChanged = false
    return JSON.stringify({ ranks: Array.from(this.#ranks, ([rank, kept]) => [rank, saved(kept)]) })
  }

  /** It could not be written. */
  markChanged(): void {
    this.#hasChanged = this.#ranks.size > 0
  }

  /** Leaves out what cannot be read. */
  restore(file: unknown): void {
    const { ranks } = (file ?? {}) as { ranks?: unknown }
    if (!Array.isArray(ranks)) return
    for (const [rank, one] of (ranks as [unknown, unknown][]).slice(0, MOST_RANKS)) {
      const kept = typeof rank === 'number' ? restored(one) : null
      if (kept) this.#ranks.set(rank as number, kept)
    }
  }
}

function thin(kept: RankLayers): void {
  kept.stride *= 2
  const broken = kept.looks.filter(({ figures }) => isBroken(figures)).length
  const keepsBroken = broken < MOST_LOOKS / 4
  kept.looks = kept.looks.filter(({ figures }, index) => index % 2 === 0 || (keepsBroken && isBroken(figures)))
}

function isBroken(figures: ReadonlyMap<LayerFigureName, Float32Array>): boolean {
  return figures.get('non_finite_share')?.some((share) => share > 0) ?? false
}

function shown(value: number | undefined): number | null {
  if (value === undefined || Number.isNaN(value)) return null
  // Single precision: seven digits are all there is.
  return Number.isFinite(value) ? Number(value.toPrecision(5)) : Number.NaN
}

function saved({ names, stride, seen, brokeFirst, looks }: RankLayers): unknown {
  const present = LAYER_FIGURE_NAMES.filter((figure) => looks.some(({ figures }) => figures.has(figure)))
  const columns = present.map((figure) => {
    const all = new Float32Array(looks.length * names.length).fill(Number.NaN)
    looks.forEach(({ figures }, look) => {
      const column = figures.get(figure)
      if (column) all.set(column, look * names.length)
    })
    return [figure, Buffer.from(all.buffer).toString('base64')]
  })
  return {
    names,
    stride,
    seen,
    brokeFirst,
    steps: looks.map(({ step }) => step),
    at: looks.map(({ at }) => at),
    columns: Object.fromEntries(columns),
  }
}

function restored(file: unknown): RankLayers | null {
  const { names, stride, seen, brokeFirst, steps, at, columns } = (file ?? {}) as Record<string, unknown>
  const isList = (value: unknown, of: string): value is unknown[] => Array.isArray(value) && value.every((one) => typeof one === of)
  if (!isList(names, 'string') || names.length > MOST_LAYERS || !isList(steps, 'number') || !isList(at, 'number')) return null
  if (typeof stride !== 'number' || typeof seen !== 'number' || steps.length !== at.length || steps.length > MOST_LOOKS) return null
  const all = LAYER_FIGURE_NAMES.flatMap((figure) => {
    const text = ((columns ?? {}) as Record<string, unknown>)[figure]
    const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : null
    if (bytes === null || bytes.length !== 4 * names.length * steps.length) return []
    return [[figure, new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))] as const]
  })
  const looks = steps.map((step, look) => ({
    step: step as number,
    at: at[look] as number,
    figures: new Map(all.map(([figure, values]) => [figure, values.subarray(look * names.length, (look + 1) * names.length)])),
  }))
  const { step, ...broken } = (brokeFirst ?? {}) as Record<string, unknown>
  const found = typeof step === 'number' ? readNonFinite(broken) : null
  return { names: names as string[], stride, seen, brokeFirst: found && { ...found, step: step as number }, looks }
}
