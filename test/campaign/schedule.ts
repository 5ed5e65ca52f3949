/** What happens in a campaign, and when: the same seed always gives the same plan. */
import { random } from '../../src/detectors/random.fixture.ts'

export const HOT_GPUS = 8
export const FAULTY_GPUS = 4

/** How a kill is aimed: at a write of the step journal or the alert journal, or at a message on its way. */
export const AIMS = ['now', 'steps', 'alerts', 'message'] as const
export type Aim = (typeof AIMS)[number]

export const RECEIVER_FAULTS = ['refuse', 'hang', 'busy', 'refused', 'reset', 'slow'] as const
export type ReceiverFault = (typeof RECEIVER_FAULTS)[number]

/** Between the SDK and the agent; `mute`: the agent gets the request, the SDK never gets the answer. */
export const GATE_FAULTS = ['refuse', 'hang', 'busy', 'html', 'missing', 'reset', 'slow', 'mute'] as const
export type GateFault = (typeof GATE_FAULTS)[number]

export type Fault = { readonly at: number } & (
  | {
      readonly kind: 'kill'
      readonly who: 'agent' | 'sampler' | 'both'
      readonly aim: Aim
      readonly delayMs: number
      readonly downMs: number
    }
  | { readonly kind: 'restart'; readonly downMs: number }
  | { readonly kind: 'full_disk'; readonly forMs: number }
  | { readonly kind: 'clock_jump'; readonly bySeconds: number; readonly forMs: number }
  | { readonly kind: 'webhook' | 'mail'; readonly how: ReceiverFault; readonly forMs: number }
  | { readonly kind: 'gate'; readonly how: GateFault; readonly forMs: number }
)

export type Ending = 'success' | 'failed' | 'raised' | 'unsaid' | 'killed'

/** One training, played by the Python SDK: one process per rank. */
export interface Play {
  readonly at: number
  readonly name: string
  /** Given by the environment, so that all ranks share it; null: the SDK makes one. */
  readonly id: string | null
  readonly ranks: number
  readonly steps: number
  readonly perSecond: number
  /** Step at which the loss becomes NaN, and for how many steps; null: never. */
  readonly nan: { readonly from: number; readonly steps: number } | null
  readonly ending: Ending
}

/** A GPU that gets hot, and stays so for a while after somebody noticed; or one whose memory errors grow. */
export interface Ailment {
  readonly at: number
  readonly kind: 'thermal' | 'ecc'
  readonly gpu: number
  readonly holdMs: number
}

export interface Schedule {
  readonly seed: number
  readonly durationMs: number
  readonly faults: readonly Fault[]
  readonly plays: readonly Play[]
  readonly ailments: readonly Ailment[]
}

const QUIET_START_MS = 8000
const FAULT_GAP_MS = 7000
const PLAYERS_AT_ONCE = 4
/** A GPU that gets hot more often within an hour would be flapping, and held for longer. */
const HEATS_PER_HOUR = 2
const HOUR_MS = 3_600_000
const JUMPS_SECONDS = [-3600, -30, 30, 3600, 86_400, 31_536_000]

/** `without`: kinds of faults to leave out, to find out which of them something needs. */
export function scheduleOf(seed: number, durationMs: number, without: readonly string[] = []): Schedule {
  const { uniform } = random(seed)
  const between = (low: number, high: number) => Math.round(low + uniform() * (high - low))
  const oneOf = <T>(list: readonly T[]): T => list[Math.floor(uniform() * list.length)] as T

  function fault(at: number): Fault {
    const dice = uniform()
    const downMs = oneOf([0, 0, between(0, 1000), between(1000, 6000)])
    if (dice < 0.45) {
      const who = oneOf(['agent', 'agent', 'agent', 'sampler', 'both'] as const)
      return { at, kind: 'kill', who, aim: oneOf(AIMS), delayMs: between(0, 6), downMs }
    }
    if (dice < 0.5) return { at, kind: 'restart', downMs }
    if (dice < 0.54) return { at, kind: 'full_disk', forMs: between(1000, 8000) }
    if (dice < 0.59) return { at, kind: 'clock_jump', bySeconds: oneOf(JUMPS_SECONDS), forMs: between(2000, 9000) }
    if (dice < 0.8) return { at, kind: oneOf(['webhook', 'mail'] as const), how: oneOf(RECEIVER_FAULTS), forMs: between(1000, 20_000) }
    return { at, kind: 'gate', how: oneOf(GATE_FAULTS), forMs: between(500, 9000) }
  }

  function play(at: number, number: number): Play {
    const ranks = uniform() < 0.2 ? 2 : 1
    const steps = between(60, 400)
    const perSecond = between(8, 25)
    const isKept = ranks > 1 || uniform() < 0.3
    const ending = oneOf<Ending>(['success', 'success', 'success', 'success', 'failed', 'raised', 'unsaid', 'killed'])
    // A run that is killed may take its last steps along, so only the others can be held to their NaN.
    const isNan = ranks === 1 && ending !== 'killed' && uniform() < 0.35
    const from = between(5, steps - 40)
    const nan = isNan ? { from, steps: uniform() < 0.4 ? steps - from : between(1, 5) } : null
    const name = `play-${seed}-${number}`
    return { at, name, id: isKept ? `${name}-id` : null, ranks, steps, perSecond, nan, ending }
  }

  const faults: Fault[] = []
  for (let at = QUIET_START_MS; at < durationMs; at += between(FAULT_GAP_MS / 10, FAULT_GAP_MS * 1.9)) faults.push(fault(at))
  const plays: Play[] = []
  for (let slot = 0; slot < PLAYERS_AT_ONCE; slot++)
    for (let at = between(0, 4000); at < durationMs; ) {
      const next = play(at, plays.length)
      plays.push(next)
      at += (next.steps / next.perSecond) * 1000 + between(500, 6000)
    }
  const ailments: Ailment[] = []
  for (let gpu = 0; gpu < HOT_GPUS; gpu++)
    for (
      let at = between(2000, Math.max(4000, Math.min(durationMs, HOUR_MS / HEATS_PER_HOUR) - 30_000));
      at < durationMs;
      at += HOUR_MS / HEATS_PER_HOUR
    )
      ailments.push({ at, kind: 'thermal', gpu, holdMs: between(0, 25_000) })
  // The detector knows an error as new only from a count that it has seen and saved, once a minute.
  for (let gpu = HOT_GPUS; gpu < HOT_GPUS + FAULTY_GPUS; gpu++)
    if (durationMs > 100_000) ailments.push({ at: between(90_000, durationMs), kind: 'ecc', gpu, holdMs: 0 })
  const inOrder = <T extends { at: number }>(list: T[]) => list.sort((a, b) => a.at - b.at)
  const kept = faults.filter(({ kind }) => !without.includes(kind))
  return { seed, durationMs, faults: inOrder(kept), plays: inOrder(plays), ailments: inOrder(ailments) }
}
