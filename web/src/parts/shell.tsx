import { computed } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { isOpenAlert, openAlertsInWords } from '../../../src/core/known/alerts.ts'
import { worstSeverity } from '../../../src/core/known/findings.ts'
import type { PlaybackState } from '../../../src/core/playback.ts'
import { session, signOut } from '../api.ts'
import { now } from '../live/agent-clock.ts'
import { reconnect } from '../live/connection.ts'
import { alerts, gpus, host, hostname, isReplay, link, playback, playedAt, version } from '../live/store.ts'
import { place } from '../location.ts'
import { PAGE_LINKS, PAGES } from '../page-list.ts'
import { clockTime, formatAge, zoneName } from '../words.ts'

/** Younger readings count as of this moment. */
const LIVE_MS = 3000

const open = computed(() => alerts.value?.filter(isOpenAlert) ?? [])
const openCount = computed(() => open.value.length)

export function TopBar() {
  const current = place.value.parts[0] ?? ''
  const nav = useRef<HTMLElement>(null)
  const count = openCount.value
  // On a phone the bar is wider than the screen: where one is has to be in sight, also when the count or the host's name pushes it aside.
  useLayoutEffect(() => {
    const bar = nav.current
    if (!bar) return
    const show = () => {
      const link = bar.querySelector<HTMLElement>('[aria-current]')
      if (link) bar.scrollLeft = link.offsetLeft + link.offsetWidth / 2 - bar.clientWidth / 2
    }
    show()
    const watch = new ResizeObserver(show)
    watch.observe(bar)
    return () => watch.disconnect()
  }, [current, count])
  return (
    <header class="top">
      <a class="brand" href="#/">
        <img src="/icon.svg" alt="" width="22" height="22" />
        gpuwarden <span class="host cut">{hostname}</span>
      </a>
      <nav class="nav" aria-label="Pages" ref={nav}>
        {PAGE_LINKS.map(({ name, label }) => (
          <a key={name} href={`#/${name}`} aria-current={isCurrent(name, current) ? 'page' : undefined}>
            {label}
            {name === 'alerts' && <AlertCount />}
          </a>
        ))}
      </nav>
      <Link />
    </header>
  )
}

function isCurrent(name: string, current: string): boolean {
  return name === (PAGES.find((page) => page.name === current)?.under ?? current)
}

function AlertCount() {
  const list = open.value
  if (list.length === 0) return null
  return (
    <span class={`count ${worstSeverity(list.map(({ finding }) => finding))}`} title={openAlertsInWords(list)}>
      {list.length}
    </span>
  )
}

function Link() {
  const { state, since } = link.value
  if (state === 'live' && isReplay.value)
    return (
      <span class="linkstate replay-state" role="status">
        <i /> {recordingState(playback.value?.state ?? 'playing', playedAt.value)}
      </span>
    )
  if (state === 'live') {
    const read = gpus.value.map((cell) => cell.view.value.ageMs).filter((age) => age !== null)
    // Without a GPU the host's figures are what there is.
    const ages = gpus.value.length === 0 && host.value ? [now.value - host.value.at] : read
    const oldest = ages.length === 0 ? null : Math.max(...ages)
    return (
      <span
        class={`linkstate ${oldest === null ? '' : oldest < LIVE_MS ? 'live' : 'old'}`}
        title={oldest === null ? 'No readings yet' : 'Age of the oldest reading shown'}
      >
        <i /> {oldest === null ? 'waiting' : oldest < LIVE_MS ? 'live' : `${formatAge(oldest)} old`}
      </span>
    )
  }
  if (state === 'lost')
    return (
      <span class="linkstate lost" role="status">
        <i /> no connection for {formatAge(now.value - since)}
        <button type="button" class="quiet" onClick={reconnect}>
          Retry
        </button>
      </span>
    )
  return (
    <span class="linkstate">
      <i /> connecting…
    </span>
  )
}

/** Never "live": whatever is shown happened at another time. */
export function recordingState(state: PlaybackState['state'], at: number | null): string {
  if (state === 'paused') return `recording, paused${at === null ? '' : ` at ${clockTime(at, at)}`}`
  return `recording, ${{ playing: 'playing', seeking: 'moving…', ended: 'ended' }[state]}`
}

export function Footer() {
  return (
    <footer class="foot">
      <span>gpuwarden {version}</span>
      <span>Times in {zoneName(now.peek())}</span>
      {session.value?.required && (
        <button type="button" class="quiet" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
    </footer>
  )
}
