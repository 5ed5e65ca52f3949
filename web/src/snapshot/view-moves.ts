/** Moving about in a timeline: the events that are shown after a step to the side, a zoom, or a look at a moment. */
import type { View } from './timeline-draw.ts'

/** Closer than this there is nothing more to see. */
const FEWEST_EVENTS = 20

export function zoomed({ from, to }: View, factor: number, around: number, events: number): View {
  const span = Math.min(events, Math.max(Math.min(events, FEWEST_EVENTS), (to - from) * factor))
  const share = to > from ? (around - from) / (to - from) : 0.5
  return inside({ from: around - share * span, to: around + (1 - share) * span }, events)
}

export function panned({ from, to }: View, byEvents: number, events: number): View {
  return inside({ from: from + byEvents, to: to + byEvents }, events)
}

/** The same width, with the moment in it. */
export function showing(view: View, moment: number, events: number): View {
  if (moment >= view.from && moment < view.to) return view
  const half = (view.to - view.from) / 2
  return inside({ from: moment - half, to: moment + half }, events)
}

function inside({ from, to }: View, events: number): View {
  const span = Math.min(events, to - from)
  const begin = Math.min(events - span, Math.max(0, from))
  return { from: begin, to: begin + span }
}
