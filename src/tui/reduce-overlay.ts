/** Keys while something lies over the screen. Pure. */
import { SIGNALS } from './overlays.ts'
import type { Outcome, Surroundings } from './reduce.ts'
import { type Overlay, PANELS, SORTS, type View } from './screen-data.ts'

const PAGE = 10

export function reduceOverlay(view: View, overlay: Overlay, name: string, around: Surroundings): Outcome {
  const closed: Outcome = { view: { ...view, overlay: null }, effect: null }
  if (name === 'escape' || name === 'q') return closed
  if (name === 'f10') return { view, effect: { kind: 'quit' } }
  switch (overlay.kind) {
    case 'sort': {
      const sort = SORTS[overlay.selected]
      if (name === 'o') return closed
      if (name !== 'enter' || !sort) return stay(view, choose(overlay, name, SORTS.length))
      return {
        view: { ...view, overlay: null, sort, descending: sort === view.sort ? !view.descending : false },
        effect: { kind: 'remember' },
      }
    }
    case 'panels': {
      if (name === 'p') return closed
      if (name !== 'enter' && name !== ' ') return stay(view, choose(overlay, name, PANELS.length))
      return { view: toggled({ ...view, overlay }, overlay.selected), effect: { kind: 'remember' } }
    }
    case 'kill': {
      const signal = SIGNALS[overlay.selected]?.name
      if (name === 'enter' && signal)
        return { view: { ...view, overlay: null }, effect: { kind: 'signal', question: overlay.question, signal } }
      return stay(view, choose(overlay, name, SIGNALS.length))
    }
    case 'process':
      if (name === 'e') return stay(view, { ...overlay, showEnvironment: !overlay.showEnvironment })
      return name === 'enter' ? closed : stay(view, scrolled(overlay, name, 500))
    case 'alerts':
      return name === 'a' || name === 'enter'
        ? closed
        : stay(view, scrolled(overlay, name, around.data.findings.length + around.data.resolved.length))
    case 'help':
      return name === '?' || name === 'h' || name === 'enter' ? closed : stay(view, scrolled(overlay, name, 40))
    case 'finding':
      return name === 'enter' ? closed : stay(view, scrolled(overlay, name, 100))
  }
}

function stay(view: View, overlay: Overlay): Outcome {
  return { view: { ...view, overlay }, effect: null }
}

function stepOf(name: string): number {
  switch (name) {
    case 'up':
      return -1
    case 'down':
      return 1
    case 'pageup':
      return -PAGE
    case 'pagedown':
      return PAGE
    case 'home':
      return Number.NEGATIVE_INFINITY
    case 'end':
      return Number.POSITIVE_INFINITY
    default:
      return 0
  }
}

function choose<T extends { readonly selected: number }>(overlay: T, name: string, count: number): T {
  return { ...overlay, selected: Math.max(0, Math.min(count - 1, overlay.selected + stepOf(name))) }
}

function scrolled<T extends { readonly offset: number }>(overlay: T, name: string, most: number): T {
  return { ...overlay, offset: Math.max(0, Math.min(most, overlay.offset + stepOf(name))) }
}

function toggled(view: View, index: number): View {
  const panel = PANELS[index]
  if (!panel) return view
  const hidden = new Set(view.hidden)
  if (!hidden.delete(panel)) hidden.add(panel)
  return { ...view, hidden }
}
