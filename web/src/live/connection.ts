/** Connects the page with the agent: asks for everything, follows the stream, and starts over after every gap. */
import { effect } from '@preact/signals'
import type { StreamEvent } from '../../../src/core/kinds.ts'
import { askAlerts, askPicture } from '../../../src/core/known/picture.ts'
import { revived } from '../../../src/core/known/revive.ts'
import type { HistoryAnswer } from '../answers.ts'
import { ask, askSession, session } from '../api.ts'
import { agentNow, runClock } from './agent-clock.ts'
import * as store from './store.ts'

const EVENT_NAMES: readonly StreamEvent['type'][] = ['devices', 'tick', 'health', 'finding', 'alerts', 'run', 'steps', 'playback']
const FIRST_WAIT_MS = 1000
const LONGEST_WAIT_MS = 15_000
/** Silent for this long, the connection counts as dead; the agent sends something every 15 s. */
const SILENCE_MS = 40_000
/** A tab that is not seen for this long lets go of the stream. */
const UNSEEN_MS = 15_000
const PICTURE_STEP_SECONDS = 2
/** More alerts changed at once than the stream carries: all are asked for, this often at most. */
const ALL_ALERTS_MS = 2000

let source: EventSource | null = null
let waitMs = FIRST_WAIT_MS
let retry: ReturnType<typeof setTimeout> | null = null
let unseen: ReturnType<typeof setTimeout> | null = null
let heardAt = 0
let attempt = 0
/** A recording has gone to another moment since the last picture. */
let hasJumped = false
let alertsTimer: ReturnType<typeof setTimeout> | null = null

/** Begins, and goes on for as long as the page lives. */
export function connect(): void {
  document.addEventListener('visibilitychange', onVisibility)
  runClock(!document.hidden)
  setInterval(checkSilence, SILENCE_MS / 4)
  effect(() => {
    const known = session.value
    const isIn = known !== null && (!known.required || known.signedIn)
    if (isIn) open()
    else hangUp()
  })
  firstQuestion()
}

/** The agent may be away at this moment: then it is asked again. */
function firstQuestion(): void {
  askSession().catch(() => {
    store.setLink('lost')
    setTimeout(firstQuestion, 2000)
  })
}

export function reconnect(): void {
  waitMs = FIRST_WAIT_MS
  open()
}

function open(): void {
  hangUp()
  if (document.hidden) return
  const own = ++attempt
  heardAt = performance.now()
  const stream = new EventSource('/api/v1/stream')
  source = stream
  // What comes before the picture waits for it, so that nothing older overwrites something newer.
  let waiting: StreamEvent[] | null = []
  const take = (message: MessageEvent<string>) => {
    heardAt = performance.now()
    const event = revived(JSON.parse(message.data) as StreamEvent)
    if (event.type === 'alerts' && event.hasMore) askAlertsSoon()
    if (event.type === 'playback' && store.isJump(event.playback)) {
      store.accept(event)
      hasJumped = true
      open()
      return
    }
    if (waiting) waiting.push(event)
    else store.accept(event)
  }
  for (const name of EVENT_NAMES) stream.addEventListener(name, take)
  stream.addEventListener('hello', (message: MessageEvent<string>) => {
    heardAt = performance.now()
    store.version.value = (JSON.parse(message.data) as { version: string }).version
    askPicture(ask).then(
      (picture) => {
        if (own !== attempt) return
        store.begin(picture, hasJumped)
        hasJumped = false
        store.setLink('live')
        waitMs = FIRST_WAIT_MS
        for (const event of waiting ?? []) store.accept(event)
        waiting = null
        store.epoch.value++
        void backfillRecent()
      },
      () => own === attempt && fail(),
    )
  })
  stream.addEventListener('bye', () => fail())
  stream.onerror = () => own === attempt && fail()
}

function askAlertsSoon(): void {
  if (alertsTimer !== null) return
  alertsTimer = setTimeout(() => {
    alertsTimer = null
    // The page of the alerts says when they cannot be had.
    askAlerts(ask).then(store.takeAlerts, () => undefined)
  }, ALL_ALERTS_MS)
}

/** The small pictures: what happened before this page looked. */
async function backfillRecent(): Promise<void> {
  for (const cell of store.gpus.value) {
    const newest = cell.sample.value?.at ?? agentNow()
    try {
      const query = {
        gpu: cell.id,
        field: 'utilizationRatio,memoryUsedBytes,memoryTotalBytes',
        from: newest - cell.recent.spanMs,
        to: newest,
        step: PICTURE_STEP_SECONDS,
      }
      const { data } = await ask<HistoryAnswer>('/api/v1/history', query)
      const [at = [], utilization = [], used = [], total = []] = data
      cell.recent.backfill(
        at.map((time, index) => {
          const bytes = used[index] ?? null
          const of = total[index] ?? null
          return { at: time ?? 0, utilization: utilization[index] ?? null, memory: bytes === null || !of ? null : bytes / of }
        }),
      )
      cell.recentVersion.value++
    } catch {
      // The pictures fill by themselves with what comes; the connection says by itself when it is gone.
      return
    }
  }
}

function fail(): void {
  hangUp()
  store.setLink('lost')
  retry = setTimeout(() => {
    // Also notices a session that ended: the stream does not say why it was refused.
    askSession().then(open, fail)
  }, waitMs)
  waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2)
}

function hangUp(): void {
  attempt++
  source?.close()
  source = null
  if (retry !== null) clearTimeout(retry)
  retry = null
}

function checkSilence(): void {
  if (source !== null && performance.now() - heardAt > SILENCE_MS) fail()
}

/** A tab in the background costs nothing: neither here nor at the agent. */
function onVisibility(): void {
  runClock(!document.hidden)
  if (unseen !== null) clearTimeout(unseen)
  unseen = null
  if (document.hidden) {
    unseen = setTimeout(() => {
      hangUp()
      store.setLink('paused')
    }, UNSEEN_MS)
  } else if (store.link.value.state !== 'live') reconnect()
}
