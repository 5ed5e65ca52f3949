/** The settings of the detectors. */
import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'
import type { IntruderOptions } from './intruder.ts'
import type { MemoryPressureOptions } from './memory-pressure.ts'
import { SENSITIVITIES, type Sensitivity, sensitivityOptions } from './sensitivity.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

const names = z.array(z.string().min(1))
const claim = z.string().regex(/^[^=\s]+=[^=\s]+$/, 'expected GPU=USER, such as 0=alice')
const positive = z.number().positive()

export const detectorSettings = {
  'detectors.disabled': setting(names, [], 'names of detectors to turn off, separated by commas'),
  'detectors.sensitivity': setting<Sensitivity>(
    z.enum(SENSITIVITIES),
    'normal',
    'low, normal or high: how little evidence is enough for leak, oom, loss_spike, loss_plateau, straggler and change',
  ),
  'policy.allowed_users': setting(names, [], 'allow list of users; anybody else on a GPU is an intruder (empty: no rule)'),
  'policy.allowed_commands': setting(names, [], 'allow list of programs, by name or path, with * and ?'),
  'policy.allowed_containers': setting(names, [], 'allow list of containers, such as docker:4f1c*, with * and ?'),
  'policy.claims': setting(z.array(claim), [], 'GPUs that belong to a user: GPU=USER by index or id, such as 0=alice; one entry per user'),
  'policy.learn_minutes': setting(
    z.number().min(0).max(10_080),
    THRESHOLDS.intruder.learnMinutes,
    'without a policy: whoever uses the GPUs in these first minutes is expected from then on',
  ),
  'anomaly.threshold': setting(
    z.number().min(0).max(1),
    THRESHOLDS.memory.levelRatio,
    'share of GPU memory in use, 0 to 1, from which it is reported',
    { env: 'THRESHOLD' },
  ),
  'thermal.margin': setting(
    z.number().min(0).max(50),
    THRESHOLDS.thermal.marginCelsius,
    'warn this many degrees Celsius below the slowdown temperature of the card',
  ),
  'thermal.notice': setting(
    z.number().min(0).max(150),
    THRESHOLDS.thermal.noticeCelsius,
    'degrees Celsius from which heat is reported as information',
  ),
  'thermal.fallback': setting(
    z.number().min(0).max(150),
    THRESHOLDS.thermal.fallbackCelsius,
    'slowdown temperature assumed for a card that does not report one',
  ),
  'idle.minutes': setting(
    positive,
    THRESHOLDS.idleHolding.minutes,
    'minutes without any work after which a process that holds memory is reported',
  ),
  'idle.memory_gib': setting(
    z.number().min(0),
    THRESHOLDS.idleHolding.memoryBytes / 1024 ** 3,
    'only processes that hold at least this many GiB',
  ),
  'stall.step_times': setting(
    z.number().min(2),
    THRESHOLDS.stall.stepTimes,
    'a run stalls after this many usual step times without a step',
  ),
  'stall.grace': setting(z.number().min(0), THRESHOLDS.stall.graceSeconds, 'and this many seconds on top'),
  'training.gradient_norm': setting(positive, THRESHOLDS.gradExplosion.norm, 'gradient norm above which gradients count as exploding'),
} satisfies Settings

export type DetectorSettings = ValuesOf<typeof detectorSettings>

/** An alert rule may set at which level its detector reports, and below which it ends. */
export interface LevelChoice {
  readonly threshold?: number | undefined
  readonly clear?: number | undefined
  readonly for_seconds?: number | undefined
}

export type LevelSettings = Partial<Record<`alerts.rules.${'memory' | 'disk' | 'source_stale'}`, boolean | LevelChoice>>

/** Options of each detector by name; they override its defaults. */
export function detectorOptions(values: DetectorSettings & LevelSettings): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const intruder: Partial<IntruderOptions> = {
    allowedUsers: values['policy.allowed_users'],
    allowedCommands: values['policy.allowed_commands'],
    allowedContainers: values['policy.allowed_containers'],
    claims: values['policy.claims'],
    learnMinutes: values['policy.learn_minutes'],
  }
  const { disk, sourceStale } = THRESHOLDS
  const [fullRatio, clearRatio] = band(levelOf(values['alerts.rules.disk']), disk.fullRatio, disk.clearRatio)
  const stale = levelOf(values['alerts.rules.source_stale'])
  const [staleSeconds, clearSeconds] = band(stale, sourceStale.staleSeconds, sourceStale.clearSeconds)
  const stall: Partial<Thresholds<'stall'>> = { stepTimes: values['stall.step_times'], graceSeconds: values['stall.grace'] }
  return {
    ...sensitivityOptions(values['detectors.sensitivity']),
    intruder,
    stall,
    thermal: {
      marginCelsius: values['thermal.margin'],
      noticeCelsius: values['thermal.notice'],
      fallbackCelsius: values['thermal.fallback'],
    },
    idle_holding: { minutes: values['idle.minutes'], memoryBytes: values['idle.memory_gib'] * 1024 ** 3 },
    grad_explosion: { norm: values['training.gradient_norm'] },
    memory_pressure: memoryPressureOptions(values['anomaly.threshold'], levelOf(values['alerts.rules.memory'])),
    disk: { fullRatio, clearRatio },
    source_stale: { staleSeconds, clearSeconds },
  }
}

function levelOf(choice: boolean | LevelChoice | undefined): LevelChoice {
  return typeof choice === 'object' ? choice : {}
}

function memoryPressureOptions(noticed: number, { threshold = noticed, clear, for_seconds }: LevelChoice): Partial<MemoryPressureOptions> {
  const { levelGapRatio, holdMinutes } = THRESHOLDS.memory
  return {
    levelRatio: threshold,
    levelGapRatio: clear === undefined ? levelGapRatio : Math.max(0, threshold - clear),
    // An earlier alert needs an earlier finding; a later alert waits after it.
    holdMinutes: Math.min(holdMinutes, (for_seconds ?? Number.POSITIVE_INFINITY) / 60),
  }
}

/** The level, and the one below which it ends: as far below as usual where only the first is given. */
function band({ threshold, clear }: LevelChoice, usual: number, usualClear: number): readonly [number, number] {
  const level = threshold ?? usual
  return [level, clear ?? level - (usual - usualClear)]
}
