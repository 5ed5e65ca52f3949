/** Play, pause, speed and the time line of a recording. */
import '../style/replay.css'
import { useEffect, useState } from 'preact/hooks'
import type { PlaybackMark } from '../../../src/core/playback.ts'
import { moveBy, passingAt, replayFault, steer, timeline, togglePlaying, wantedAt } from '../live/replay.ts'
import { isReplay, playback, playedAt } from '../live/store.ts'
import { clockTime, formatAge, severityTone } from '../words.ts'
import { neighborMark, placeOnLine, replayKey, SPEEDS, speedText } from './replay-line.ts'

/** No recording is of that day: the date is always shown. */
const WITH_DATE = 0

export function ReplayBar() {
  return isReplay.value && playback.value ? <Bar /> : null
}

function Bar() {
  const { state = 'playing', speed = 1 } = playback.value ?? {}
  const line = timeline.value
  const { marks = [], firstAt = null, lastAt = null, forwardOnly = null } = line ?? {}
  const [dragged, setDragged] = useState<number | null>(null)
  const at = dragged ?? wantedAt.value ?? playedAt.value ?? firstAt
  useKeys()
  const isRead = firstAt !== null && lastAt !== null && at !== null
  const goTo = (mark: PlaybackMark | null) => mark && void steer({ at: mark.at })
  const before = isRead ? neighborMark(marks, at, -1) : null
  const after = isRead ? neighborMark(marks, at, 1) : null
  return (
    <section class="replay" aria-label="Recording">
      <div class="replay-line">
        <button type="button" class="primary replay-play" onClick={togglePlaying} title="Space" disabled={state === 'seeking'}>
          {state === 'playing' ? 'Pause' : state === 'ended' ? 'Play again' : 'Play'}
        </button>
        <label>
          <span class="visually-hidden">Speed</span>
          <select
            value={speed === null ? 'max' : String(speed)}
            onChange={({ currentTarget: { value } }) => void steer({ speed: value === 'max' ? 'max' : Number(value) })}
          >
            {[...new Set([...SPEEDS, ...(speed === null ? [] : [speed])])]
              .sort((a, b) => a - b)
              .map((one) => (
                <option key={one} value={String(one)}>
                  {speedText(one)}
                </option>
              ))}
            <option value="max">max</option>
          </select>
        </label>
        <button
          type="button"
          disabled={before === null}
          title="Previous finding or ending"
          aria-label="Previous mark"
          onClick={() => goTo(before)}
        >
          ◂
        </button>
        <button type="button" disabled={after === null} title="Next finding or ending" aria-label="Next mark" onClick={() => goTo(after)}>
          ▸
        </button>
        <span class="replay-time">
          <b>{at === null ? '–' : clockTime(at, WITH_DATE)}</b>
          {passingAt.value !== null && <span class="faint"> passing {clockTime(passingAt.value, lastAt ?? passingAt.value)}</span>}
          {isRead && (
            <span class="faint">
              {' '}
              {formatAge(at - firstAt)} of {formatAge(lastAt - firstAt)}
            </span>
          )}
        </span>
      </div>
      {isRead ? (
        <div class="replay-track">
          <div class="replay-marks" aria-hidden="true">
            {marks.map((mark) => (
              <button
                type="button"
                tabIndex={-1}
                key={`${mark.at} ${mark.message}`}
                class={`fill-${severityTone(mark.severity)} ${mark.kind.startsWith('run_') ? 'end' : ''}`}
                style={{ left: `${placeOnLine(mark.at, firstAt, lastAt) * 100}%` }}
                title={`${clockTime(mark.at, lastAt)} ${mark.message}`}
                onClick={() => goTo(mark)}
              />
            ))}
          </div>
          <input
            type="range"
            class="replay-slider"
            aria-label="Moment of the recording"
            aria-valuetext={clockTime(at, lastAt)}
            title={forwardOnly ?? 'Drag, or use the arrow keys: 10 s, with Shift 1 min'}
            min={firstAt}
            max={lastAt}
            step="any"
            value={at}
            onInput={({ currentTarget }) => setDragged(Number(currentTarget.value))}
            onChange={({ currentTarget }) => {
              setDragged(null)
              void steer({ at: Number(currentTarget.value) })
            }}
          />
        </div>
      ) : (
        <p class="small faint">The recording is being read to its end; the time line appears then.</p>
      )}
      {replayFault.value !== null && (
        <p class="fault" role="alert">
          {replayFault.value}
        </p>
      )}
    </section>
  )
}

function useKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const action = event.target instanceof Element ? replayKey(event, event.target) : null
      if (action === null) return
      event.preventDefault()
      if (action === 'toggle') togglePlaying()
      else moveBy(action)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}
