import { alertRows, chosenAlert } from './alert-rows.ts'
import { SILENCE_CHOICES } from './alerts-overlay.ts'
import type { Outcome, Surroundings } from './outcome.ts'
import { SIGNALS } from './overlays.ts'
import { type Overlay, PANELS, type ScreenData, SORTS, type View } from './screen-data.ts'

const PAGE = 10

export function reduceOverlay(view: View, overlay: Overlay, name: string, around: Surroundings): Outcome {
  const closed: Outcome = { view: { ...view, overlay: null }, effect: null }
  const alerts: View = {
    ...view,
    overlay: { kind: 'alerts', selected: 0, fingerprint: overlay.kind === 'silence' ? overlay.finding.fingerprint : null },
  }
  if (name === 'escape' || name === 'q') return overlay.kind === 'silence' ? { view: alerts, effect: null } : closed
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
      return name === 'a' ? closed : alertKey(view, overlay, name, around)
    case 'silence':
      if (name !== 'enter') return stay(view, choose(overlay, name, SILENCE_CHOICES.length))
      return { view: alerts, effect: overlay.selected === 1 ? { kind: 'silence', finding: overlay.finding } : null }
    case 'help':
      return name === '?' || name === 'h' || name === 'enter' ? closed : stay(view, scrolled(overlay, name, 40))
    case 'finding':
    case 'ranks':
      return name === 'enter' ? closed : stay(view, scrolled(overlay, name, 1000))
  }
}

function alertKey(view: View, overlay: AlertsOverlay, name: string, { data }: Surroundings): Outcome {
  const rows = alertRows(data)
  const selected = chosenAlert(rows, overlay)
  const row = rows[selected]
  const refuse = (text: string): Outcome => ({ view: { ...view, overlay, message: { text, isTrouble: true } }, effect: null })
  switch (name) {
    case 'enter':
      return row ? stay(view, { kind: 'finding', fingerprint: row.finding.fingerprint, offset: 0 }) : stay(view, overlay)
    case 'A':
    case 'S':
      if (data.isReadonly) return refuse('this view is read-only (--readonly)')
      if (data.alerts === null) return refuse('alerts need a running agent: start "gpuwarden monitor"')
      if (!row?.isOpen) return refuse('it is resolved')
      if (name === 'S') return stay(view, { kind: 'silence', finding: row.finding, selected: 0 })
      return { view: { ...view, overlay }, effect: { kind: 'acknowledge', finding: row.finding } }
    default:
      return stay(view, chooseAlert(overlay, choose({ selected }, name, rows.length).selected, data))
  }
}

type AlertsOverlay = Extract<Overlay, { kind: 'alerts' }>

export function chooseAlert(overlay: AlertsOverlay, selected: number, data: ScreenData): AlertsOverlay {
  return { ...overlay, selected, fingerprint: alertRows(data)[selected]?.finding.fingerprint ?? null }
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
