/** What happened to a GPU in a time range: findings and driver events, as marks on its charts. */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { isAboutGpu } from '../../../../src/core/known/about-gpu.ts'
import type { Finding, GpuEvent, Run } from '../../../../src/core/model.ts'
import type { EventsAnswer, FindingsAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import type { ChartMark } from '../../chart/time-chart.tsx'
import { endingMarks } from '../../ending-marks.ts'
import { presentOf } from '../../history.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { epoch, events, findings, runs } from '../../live/store.ts'
import { boundsOf, type TimeRange } from '../../time-range.ts'
import { severityTone } from '../../words.ts'

export interface Happenings {
  readonly findings: readonly Finding[]
  readonly events: readonly GpuEvent[]
}

const REFRESH_MS = 60_000
const NOTHING: Happenings = { findings: [], events: [] }

export function useHappenings(cell: GpuCell, range: TimeRange): ReadonlySignal<Happenings> {
  const found = useMemo(() => signal<Happenings>(NOTHING), [cell])
  const rangeKey = range.kind === 'last' ? range.name : `${range.from}-${range.to}`
  // A finding that begins or ends, and an event, are reasons to look again.
  const news = `${findings.value.map(({ fingerprint }) => fingerprint).join()} ${events.value.length}`
  useEffect(() => {
    const stop = new AbortController()
    const load = () => {
      if (document.hidden) return
      const { from, to } = boundsOf(range, presentOf(cell))
      const span = { gpu: cell.id, from: Math.floor(from), to: Math.ceil(to) }
      Promise.all([
        // Of all: those of a run name its GPU by number only.
        ask<FindingsAnswer>('/api/v1/findings/history', { from: span.from, to: span.to, limit: 1000 }, { signal: stop.signal }),
        ask<EventsAnswer>('/api/v1/events', span, { signal: stop.signal }),
      ]).then(
        ([past, happened]) => {
          const own = past.findings.filter(({ subject }) => isAboutGpu(subject, cell.info.peek(), runs.peek()))
          found.value = { findings: own, events: happened.events }
        },
        // Marks are an addition: the charts and the connection's own state say when the agent is away.
        () => undefined,
      )
    }
    load()
    const timer = setInterval(load, REFRESH_MS)
    return () => {
      stop.abort()
      clearInterval(timer)
    }
  }, [cell, rangeKey, epoch.value, news])
  return found
}

/** One mark where a finding began, one where it ended, one per event and per run that ended. */
export function marksOf({ findings: list, events: happened }: Happenings, ended: Iterable<Run> = []): readonly ChartMark[] {
  const began = list.map((finding) => ({
    at: finding.since,
    label: `${finding.detector}: ${finding.message}`,
    tone: severityTone(finding.severity),
  }))
  const over = list
    // The death of a run does not last.
    .filter(({ state, detector }) => state === 'resolved' && detector !== 'run_died')
    .map((finding) => ({ at: finding.at, label: `${finding.detector} is over`, tone: 'muted' as const }))
  const xids = happened.map(({ at, event, code, message }) => ({
    at,
    label: `${event === 'xid' ? `XID ${code ?? '?'}` : event.replaceAll('_', ' ')}: ${message}`,
    tone: event === 'recovered' ? ('muted' as const) : ('critical' as const),
  }))
  return [...began, ...over, ...xids, ...endingMarks(ended, list)].sort((a, b) => a.at - b.at)
}
