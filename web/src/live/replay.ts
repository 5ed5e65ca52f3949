/** The recording that is played: its time line, and what people do with it. */
import { effect, signal } from '@preact/signals'
import type { PlaybackCommand } from '../../../src/core/playback.ts'
import type { ReplayAnswer } from '../answers.ts'
import { ask, inWords } from '../api.ts'
import { epoch, isReplay, playback, playedAt } from './store.ts'

/** Until the agent has read the recording to its end. */
const ASK_AGAIN_MS = 1000

export type Timeline = Pick<ReplayAnswer, 'firstAt' | 'lastAt' | 'marks' | 'forwardOnly'>

export const timeline = signal<Timeline | null>(null)
/** Why the last wish was refused. */
export const replayFault = signal<string | null>(null)
/** Where somebody wants to go, until it is there. */
export const wantedAt = signal<number | null>(null)

/** How far it is on the way there; null: not on the way, or hardly begun. */
export const passingAt = signal<number | null>(null)

let timer: ReturnType<typeof setTimeout> | undefined

effect(() => {
  if (isReplay.value && epoch.value > 0) void load()
  else timeline.value = null
})
effect(() => {
  const state = playback.value?.state
  if (state !== undefined && state !== 'seeking') wantedAt.value = null
})
// The stream says nothing on the way.
effect(() => {
  if (playback.value?.state !== 'seeking') {
    passingAt.value = null
    return
  }
  const look = () =>
    ask<ReplayAnswer>('/api/v1/replay').then(
      ({ at, state }) => (passingAt.value = state === 'seeking' ? at : null),
      () => undefined,
    )
  const looking = setInterval(() => void look(), ASK_AGAIN_MS)
  return () => clearInterval(looking)
})

async function load(): Promise<void> {
  clearTimeout(timer)
  try {
    timeline.value = await ask<ReplayAnswer>('/api/v1/replay')
  } catch {
    // The connection says by itself when the agent is away, and asks anew when it is back.
  }
  if (isReplay.peek() && timeline.peek()?.lastAt === null) timer = setTimeout(() => void load(), ASK_AGAIN_MS)
}

export async function steer(command: Omit<PlaybackCommand, 'speed'> & { readonly speed?: number | 'max' }): Promise<void> {
  if (command.at !== undefined) wantedAt.value = command.at
  try {
    await ask('/api/v1/replay', {}, { method: 'POST', body: command })
    replayFault.value = null
  } catch (error) {
    wantedAt.value = null
    replayFault.value = inWords(error)
  }
}

export function togglePlaying(): void {
  void steer({ playing: playback.peek()?.state !== 'playing' })
}

/** From where it is, or from where it is going. */
export function moveBy(ms: number): void {
  const { firstAt, lastAt } = timeline.peek() ?? {}
  const at = (wantedAt.peek() ?? playedAt.peek() ?? firstAt ?? 0) + ms
  void steer({ at: Math.max(firstAt ?? at, Math.min(lastAt ?? at, at)) })
}
