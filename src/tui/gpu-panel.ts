/** All GPUs: as cards while they are few, else a row each, scrolling. */
import { formatPercent, formatUsed, formatWatts } from '../core/format.ts'
import { cardUtilization, countedOnce } from '../core/gpu-totals.ts'
import type { GpuSample, Reading } from '../core/model.ts'
import { CARD_ROWS, drawCard } from './gpu-card.ts'
import { drawGpuRow } from './gpu-row.ts'
import { type Rect, TONE } from './grid.ts'
import type { Painter } from './painter.ts'
import type { GpuData, GpuLayout, ScreenData, Scroll } from './screen-data.ts'
import { follow, range } from './scroll.ts'

/** From this many on, a row each is what people can still take in. */
const MANY = 8
const TALLEST_CARD = 9
const TALLEST_ALONE = 14
const WIDE = 150
const VERY_WIDE = 250

export interface GpuPlan {
  readonly mode: 'cards' | 'rows'
  readonly columns: number
  readonly cardRows: number
  readonly height: number
}

/** `most` rows may be taken; with few GPUs less is taken. */
export function planGpus(count: number, width: number, most: number, layout: GpuLayout, isFocused: boolean): GpuPlan {
  if (count === 0) return { mode: 'rows', columns: 1, cardRows: 0, height: Math.min(1, most) }
  const columns = Math.min(count, width >= VERY_WIDE ? 3 : width >= WIDE ? 2 : 1)
  const lines = Math.ceil(count / columns)
  const fits = lines * CARD_ROWS <= most && width >= 48
  const wantsCards = layout === 'cards' || (layout === 'auto' && (count < MANY || isFocused))
  if (wantsCards && (fits || (layout === 'cards' && most >= CARD_ROWS && width >= 48))) {
    const tallest = isFocused ? TALLEST_ALONE : TALLEST_CARD
    const cardRows = Math.max(CARD_ROWS, Math.min(tallest, Math.floor(most / lines)))
    const shown = Math.min(lines, Math.max(1, Math.floor(most / cardRows)))
    return { mode: 'cards', columns, cardRows, height: shown * cardRows }
  }
  return { mode: 'rows', columns: 1, cardRows: 1, height: Math.min(count + 1, most) }
}

export function drawGpus(painter: Painter, data: ScreenData, plan: GpuPlan, rect: Rect, scroll: Scroll, isFocused: boolean): Scroll {
  const { x, y, width, height } = rect
  const { gpus } = data
  if (gpus.length === 0) {
    painter.grid.put(x + 1, y, waiting(data), TONE.muted, width - 2)
    return { offset: 0, selected: 0 }
  }
  const context = { now: data.now, at: data.at }
  if (plan.mode === 'cards') {
    const lines = Math.ceil(gpus.length / plan.columns)
    const visible = Math.max(1, Math.floor(height / plan.cardRows))
    const kept = follow({ offset: scroll.offset, selected: Math.floor(scroll.selected / plan.columns) }, lines, visible)
    const each = Math.floor(width / plan.columns)
    for (let index = kept.offset * plan.columns; index < Math.min(gpus.length, (kept.offset + visible) * plan.columns); index++) {
      const gpu = gpus[index]
      if (!gpu) continue
      const place = index - kept.offset * plan.columns
      const column = place % plan.columns
      const left = x + column * each
      const card: Rect = {
        x: left,
        y: y + Math.floor(place / plan.columns) * plan.cardRows,
        width: (column === plan.columns - 1 ? x + width - left : each) - (column === plan.columns - 1 ? 0 : 1),
        height: plan.cardRows,
      }
      drawCard(painter, gpu, card, { ...context, isSelected: isFocused && index === scroll.selected })
    }
    return { offset: kept.offset, selected: Math.min(scroll.selected, gpus.length - 1) }
  }
  return drawRows(painter, data, rect, scroll, isFocused)
}

function drawRows(painter: Painter, data: ScreenData, { x, y, width, height }: Rect, scroll: Scroll, isFocused: boolean): Scroll {
  const { gpus } = data
  const hasTitle = height >= 3 || height > gpus.length
  const visible = Math.max(1, height - (hasTitle ? 1 : 0))
  const kept = follow(scroll, gpus.length, visible)
  if (hasTitle) {
    painter.rule(
      x,
      y,
      width,
      [{ text: `GPUs ${range(kept, visible, gpus.length)}` }, { text: together(gpus), style: TONE.muted }],
      isFocused,
    )
    painter.hit({ x, y, width, height: 1 }, { kind: 'panel', panel: 'gpus' })
  }
  gpus.slice(kept.offset, kept.offset + visible).forEach((gpu, index) => {
    const isSelected = isFocused && kept.offset + index === kept.selected
    drawGpuRow(painter, gpu, x, y + (hasTitle ? 1 : 0) + index, width, data.at, isSelected)
  })
  return kept
}

/** All of them, also those out of sight; what no card reports is left out. */
function together(gpus: readonly GpuData[]): string {
  const live = gpus.flatMap(({ view }) => (view.live ? [view] : []))
  const cards = countedOnce(live)
  const known = (of: (sample: GpuSample) => Reading) => cards.flatMap(({ sample }) => (sample === null ? null : of(sample)) ?? [])
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  const utilization = cards.flatMap((card) => cardUtilization(card, live) ?? [])
  const [used, total] = [known((sample) => sample.memoryUsedBytes), known((sample) => sample.memoryTotalBytes)]
  const watts = known((sample) => sample.powerWatts)
  return [
    utilization.length === 0 ? '' : `util ${formatPercent(sum(utilization) / utilization.length)}`,
    used.length === 0 || used.length !== total.length ? '' : `mem ${formatUsed(sum(used), sum(total))}`,
    watts.length === 0 ? '' : formatWatts(sum(watts)),
  ]
    .filter((text) => text !== '')
    .join('  ')
}

function waiting(data: ScreenData): string {
  if (data.linkLost) return 'no GPU known: the agent does not answer'
  return data.health.some((source) => source.state === 'failed') ? 'no GPU could be read; see above' : 'waiting for the first sample …'
}
