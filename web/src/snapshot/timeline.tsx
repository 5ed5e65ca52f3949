/** The timeline of live memory as stacked bands: hover names the stack, a click pins it and moves the moment. */
import { effect, type Signal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { BAND_KINDS, type BandKind, type DevicePicture } from '../../../src/core/memory/snapshot-picture.ts'
import { Choices } from '../parts/parts.tsx'
import { formatBytes } from '../words.ts'
import { BandList, BandStacks } from './band-list.tsx'
import type { CloserLook } from './closer-look.ts'
import { momentText } from './moment-text.ts'
import { type TimelineState, useTimelineCanvas } from './timeline-canvas.ts'
import { panned, zoomed } from './view-moves.ts'

const KIND_LABELS: Readonly<Record<BandKind, string>> = { line: 'by line', category: 'by category' }
const KEYS =
  'Arrow keys move the moment, with Ctrl by one event; Shift and arrow keys pan; plus and minus zoom; up and down choose a band; Escape shows all.'

export function Timeline({
  picture,
  closer,
  moment,
}: {
  readonly picture: DevicePicture
  readonly closer: CloserLook | null
  /** Index of an event. */
  readonly moment: Signal<number>
}) {
  const kind = useSignal<BandKind>('line')
  const pinned = useSignal<number | null>(null)
  const view = useSignal({ from: 0, to: picture.events })
  const state: TimelineState = { picture, kind, pinned, view, moment }
  const canvas = useRef<HTMLCanvasElement>(null)
  const tip = useRef<HTMLDivElement>(null)
  useTimelineCanvas(canvas, tip, state, closer)
  const said = useComputed(() => momentText(picture, moment.value))
  const box = useRef<HTMLDivElement>(null)
  // What is said about the moment changes with each pixel: only these attributes do.
  useEffect(
    () =>
      effect(() => {
        box.current?.setAttribute('aria-valuenow', String(moment.value))
        box.current?.setAttribute('aria-valuetext', said.value)
      }),
    [],
  )
  const { bands } = picture.bands[kind.value]
  const zoom = (factor: number) => {
    const { from, to } = view.value
    view.value = zoomed(view.value, factor, (from + to) / 2, picture.events)
  }
  const pan = (share: number) => {
    view.value = panned(view.value, share * (view.value.to - view.value.from), picture.events)
  }
  const isWhole = view.value.from <= 0 && view.value.to >= picture.events
  return (
    <div class="timeline">
      <div class="toolbar">
        <Choices
          label="Bands"
          options={BAND_KINDS.map((value) => ({ value, label: KIND_LABELS[value] }))}
          value={kind.value}
          onChoose={(value) => {
            kind.value = value
            pinned.value = null
          }}
        />
        <span class="tools">
          <button type="button" aria-label="Earlier" onClick={() => pan(-0.5)} disabled={isWhole}>
            ◀
          </button>
          <button type="button" aria-label="Zoom in" onClick={() => zoom(0.5)}>
            +
          </button>
          <button type="button" aria-label="Zoom out" onClick={() => zoom(2)} disabled={isWhole}>
            −
          </button>
          <button type="button" aria-label="Later" onClick={() => pan(0.5)} disabled={isWhole}>
            ▶
          </button>
          <button
            type="button"
            onClick={() => {
              view.value = { from: 0, to: picture.events }
            }}
            disabled={isWhole}
          >
            All
          </button>
        </span>
      </div>
      <div
        ref={box}
        class="timeline-box"
        role="slider"
        tabIndex={0}
        aria-label={`Memory in use over ${picture.events} events: the moment. ${KEYS}`}
        aria-valuemin={-1}
        aria-valuemax={picture.events - 1}
        aria-valuenow={moment.peek()}
        aria-valuetext={said.peek()}
      >
        <canvas ref={canvas} />
      </div>
      <div ref={tip} class="snapshot-tip" hidden />
      <p class="small faint">
        {momentText(picture, moment.value)}. Dashed: reserved, up to {formatBytes(reservedPeak(picture))}. Drag to pan, Ctrl and wheel to
        zoom.
      </p>
      <BandList bands={bands} pinned={pinned} />
      {pinned.value !== null && bands[pinned.value] && <BandStacks band={bands[pinned.value] as (typeof bands)[number]} />}
    </div>
  )
}

function reservedPeak({ bands }: DevicePicture): number {
  let [sum, most] = [0, 0]
  for (const difference of bands.line.columns.reserved) {
    sum += difference
    most = Math.max(most, sum)
  }
  return most
}
