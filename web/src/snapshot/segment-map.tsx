/** The segments with what is in them at a moment; the slider chooses it. */
import { type Signal, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { DevicePicture, MomentPicture, SegmentPicture } from '../../../src/core/memory/snapshot-picture.ts'
import { colors } from '../chart/colors.ts'
import { formatBytes, formatCount, formatShare } from '../words.ts'
import { type CloserLook, PatientAsk } from './closer-look.ts'
import { momentText } from './moment-text.ts'
import { partAt, type Ribbon, ribbonOf } from './ribbon.ts'
import { drawSegments, ROW_PX, ribbonHeight } from './segment-canvas.ts'
import { bandColors } from './timeline-draw.ts'

interface Props {
  readonly picture: DevicePicture
  readonly closer: CloserLook | null
  readonly moment: Signal<number>
}

export function SegmentMap({ picture, closer, moment }: Props) {
  const shown = useSignal(nearest(picture.moments, moment.peek()))
  const fault = useSignal(false)
  const ask = useMemo(() => new PatientAsk(), [])
  useSignalEffect(() => {
    const index = moment.value
    const kept = nearest(picture.moments, index)
    fault.value = false
    if (closer === null || kept?.index === index) {
      ask.cancel()
      shown.value = kept
    } else
      ask.ask(
        (stopped) => closer.moment(index, stopped),
        (answer) => {
          shown.value = answer
        },
        () => {
          shown.value = kept
          fault.value = true
        },
      )
  })
  useEffect(() => () => ask.cancel(), [])
  const now = shown.value
  if (!now) return <p class="small faint">There are no segments in this file.</p>
  return (
    <div class="segment-map">
      <MomentChoice picture={picture} isFree={closer !== null} moment={moment} shown={now} />
      {fault.value && <p class="small faint">That moment could not be had; the nearest one is shown.</p>}
      <Segments picture={picture} now={now} />
    </div>
  )
}

/** In a file only some moments are there: the slider steps from one to the next. */
function MomentChoice({
  picture,
  isFree,
  moment,
  shown,
}: Pick<Props, 'picture' | 'moment'> & { readonly isFree: boolean; readonly shown: MomentPicture }) {
  const { moments, peak, events, marks } = picture
  const oom = marks.findLast(({ kind }) => kind === 'oom')
  const [most, value] = isFree ? [events - 1, moment.value] : [moments.length - 1, moments.findIndex(({ index }) => index === shown.index)]
  const choose = (at: number) => {
    moment.value = isFree ? at : (moments[at]?.index ?? 0)
  }
  return (
    <div class="moment-choice">
      <input
        type="range"
        min={0}
        max={Math.max(0, most)}
        value={Math.max(0, value)}
        aria-label="Moment of the segments"
        aria-valuetext={momentText(picture, shown.index)}
        onInput={({ currentTarget }) => choose(Number(currentTarget.value))}
      />
      <span class="tools">
        {[
          { label: 'Peak', index: peak.index },
          { label: 'End', index: events - 1 },
          ...(oom ? [{ label: 'Out of memory', index: oom.index }] : []),
        ].map(({ label, index }) => (
          <button
            key={label}
            type="button"
            aria-pressed={shown.index === index}
            onClick={() => {
              moment.value = index
            }}
          >
            {label}
          </button>
        ))}
      </span>
      <span class="small faint">{momentText(picture, shown.index)}</span>
    </div>
  )
}

function Segments({ picture, now }: { readonly picture: DevicePicture; readonly now: MomentPicture }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const selected = useSignal<number | null>(null)
  const offset = useSignal<number | null>(null)
  const width = useSignal(0)
  const ribbon = useMemo(() => ribbonOf(now.segments, Math.max(40, width.value)), [now, width.value])
  const palette = colors.value
  const { bands } = picture.bands.line
  const positions = useMemo(() => new Map(bands.map(({ name }, band) => [name, band])), [bands])
  useEffect(() => {
    const size = new ResizeObserver(([entry]) => {
      width.value = Math.floor(entry?.contentRect.width ?? 0)
    })
    if (canvas.current?.parentElement) size.observe(canvas.current.parentElement)
    return () => size.disconnect()
  }, [])
  useEffect(() => {
    const fills = bandColors(palette, bands)
    const colorOf = (line: string) => fills[positions.get(line) ?? bands.length - 1] ?? palette.pale
    if (canvas.current) drawSegments(canvas.current, now, ribbon, palette, colorOf, selected.value)
  }, [now, ribbon, palette, selected.value])
  const point = (event: MouseEvent) => {
    const part = under(event, ribbon)
    selected.value = part?.segment ?? null
    offset.value = part ? part.from + ((event.offsetX - part.x) / part.width) * (part.to - part.from) : null
  }
  const key = (event: KeyboardEvent) => {
    const last = now.segments.length - 1
    const at = selected.value ?? -1
    if (event.key === 'ArrowRight') selected.value = Math.min(last, at + 1)
    else if (event.key === 'ArrowLeft') selected.value = Math.max(0, at - 1)
    else if (event.key === 'Home') selected.value = 0
    else if (event.key === 'End') selected.value = last
    else return
    offset.value = null
    event.preventDefault()
  }
  const chosen = selected.value === null ? undefined : now.segments[selected.value]
  const pinned = now.segments.filter(({ isPinned }) => isPinned).length
  const words = chosen ? segmentText(chosen, now, offset.value) : 'Point at a segment, or use the arrow keys, to see what is in it.'
  return (
    <>
      <p class="small">
        {formatCount(now.segments.length + now.leftOut.segments, 'segment')}, {formatBytes(now.reservedBytes)} reserved,{' '}
        {formatBytes(now.allocatedBytes)} in use
        {pinned > 0 && (
          <>
            , <b class="tone-critical">{pinned} pinned by a few blocks</b>
          </>
        )}
        {now.leftOut.segments > 0 && `; ${formatCount(now.leftOut.segments, 'small one')} (${formatBytes(now.leftOut.bytes)}) not shown`}.
        {!now.isExact && <span class="faint"> Rebuilt from the events.</span>}
      </p>
      <div
        class="segment-box"
        role="slider"
        tabIndex={0}
        aria-label="Segments, largest first: arrow keys move from one to the next"
        aria-valuemin={0}
        aria-valuemax={Math.max(0, now.segments.length - 1)}
        aria-valuenow={selected.value ?? 0}
        aria-valuetext={words}
        onKeyDown={key}
      >
        <canvas ref={canvas} style={{ height: `${ribbonHeight(ribbon)}px` }} onPointerMove={point} onClick={point} />
      </div>
      <p class="small breakable segment-words">{words}</p>
    </>
  )
}

function under(event: MouseEvent, ribbon: Ribbon) {
  return partAt(ribbon, Math.floor(event.offsetY / ROW_PX), event.offsetX)
}

function segmentText(segment: SegmentPicture, { lines }: MomentPicture, offset: number | null): string {
  const { address, bytes, liveBytes, blocks, pool, stream, isSmall, isExpandable, isPinned, pieces } = segment
  const kinds = [
    isPinned ? 'pinned' : '',
    isSmall ? 'for small requests' : '',
    isExpandable ? 'expandable' : '',
    pool === '0.0' ? '' : `private pool ${pool}`,
    stream === 0 ? '' : `stream 0x${stream.toString(16)}`,
  ].filter((kind) => kind !== '')
  const head = `${formatBytes(bytes)} at ${address}${kinds.length > 0 ? ` (${kinds.join(', ')})` : ''}: ${formatBytes(liveBytes)} in use, ${formatShare(liveBytes, bytes)}, in ${formatCount(blocks, 'block')}.`
  if (offset === null) {
    const held = [...new Set(pieces.filter((_, i) => i % 3 === 2))].slice(0, 3).map((line) => lines[line])
    return held.length === 0 ? head : `${head} Made at ${held.join('; ')}.`
  }
  for (let i = 0; i < pieces.length; i += 3) {
    const [from, long, line] = [pieces[i] as number, pieces[i + 1] as number, pieces[i + 2] as number]
    if (offset >= from && offset < from + long) return `${head} Here: ${formatBytes(long)} made at ${lines[line]}.`
  }
  return `${head} Here: free.`
}

function nearest(moments: readonly MomentPicture[], index: number): MomentPicture | null {
  let best: MomentPicture | null = null
  for (const one of moments) if (best === null || Math.abs(one.index - index) < Math.abs(best.index - index)) best = one
  return best
}
