/** Asks the agent again and again, for as long as a page shows the answer and somebody sees it. */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { address, ask, inWords, type Query, Refusal } from './api.ts'
import { epoch } from './live/store.ts'

/** What went wrong is asked for again soon, also where an answer holds for long. */
const FAULT_MS = 5000

export interface Polled<Answer> {
  /** The latest; stays while a later question goes wrong. */
  readonly answer: Answer | null
  readonly fault: string | null
  /** The agent's error code; null when it could not be reached, or there is no error. */
  readonly code: string | null
}

/** `key` names the question: another key is another question, null none at all. `everyMs` null: asked once. Another `turn` asks at once. */
export function usePolled<Answer>(
  key: string | null,
  question: (signal: AbortSignal) => Promise<Answer>,
  everyMs: number | null,
  turn = 0,
): ReadonlySignal<Polled<Answer>> {
  const state = useMemo(() => signal<Polled<Answer>>({ answer: null, fault: null, code: null }), [key])
  const latest = useRef(question)
  latest.current = question
  useEffect(() => {
    if (key === null) return
    const stop = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let isAsking = false
    const load = async () => {
      if (document.hidden || isAsking) return
      clearTimeout(timer)
      isAsking = true
      try {
        const answer = await latest.current(stop.signal)
        if (!stop.signal.aborted) state.value = { answer, fault: null, code: null }
      } catch (error) {
        if (!stop.signal.aborted)
          state.value = { ...state.peek(), fault: inWords(error), code: error instanceof Refusal ? error.code : null }
      }
      isAsking = false
      const waitMs = everyMs !== null && state.peek().fault !== null ? Math.min(everyMs, FAULT_MS) : everyMs
      if (waitMs !== null && !stop.signal.aborted) timer = setTimeout(() => void load(), waitMs)
    }
    // A tab in the background asks nothing; it catches up when it is seen again.
    const onVisibility = () => {
      if (!document.hidden && (everyMs !== null || state.peek().answer === null)) void load()
    }
    document.addEventListener('visibilitychange', onVisibility)
    void load()
    return () => {
      stop.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisibility)
    }
  }, [key, everyMs, turn, epoch.value])
  return state
}

/** The same for a plain question; `again` asks at once, after a change. */
export function useAnswer<Answer>(path: string, query: Query, everyMs: number | null): Polled<Answer> & { readonly again: () => void } {
  const [turn, setTurn] = useState(0)
  const polled = usePolled<Answer>(address(path, query), (signal) => ask<Answer>(path, query, { signal }), everyMs, turn)
  return { ...polled.value, again: () => setTurn((last) => last + 1) }
}
