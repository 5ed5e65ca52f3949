/** All detectors. A new one is its file and its line here. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { change } from './change.ts'
import { checkpointHeavy } from './checkpoint-heavy.ts'
import { copyBound } from './copy-bound.ts'
import { disk } from './disk.ts'
import { diverged } from './diverged.ts'
import { driverStuck } from './driver-stuck.ts'
import { ecc } from './ecc.ts'
import { evalHeavy } from './eval-heavy.ts'
import { gpuLost } from './gpu-lost.ts'
import { gradExplosion } from './grad-explosion.ts'
import { idleHolding } from './idle-holding.ts'
import { intruder } from './intruder.ts'
import { leak } from './leak.ts'
import { lossNan } from './loss-nan.ts'
import { lossPlateau } from './loss-plateau.ts'
import { lossSpike } from './loss-spike.ts'
import { memoryPressure } from './memory-pressure.ts'
import { oom } from './oom.ts'
import { powerBrake } from './power-brake.ts'
import { remap } from './remap.ts'
import { runDied } from './run-died.ts'
import { slowData } from './slow-data.ts'
import { sourceStale } from './source-stale.ts'
import { stall } from './stall.ts'
import { straggler } from './straggler.ts'
import { syncBound } from './sync-bound.ts'
import { thermal } from './thermal.ts'
import { throttle } from './throttle.ts'
import { xid } from './xid.ts'
import { zombie } from './zombie.ts'

export const detectors: readonly DetectorKind[] = [
  leak,
  oom,
  memoryPressure,
  change,
  intruder,
  idleHolding,
  zombie,
  stall,
  slowData,
  copyBound,
  syncBound,
  checkpointHeavy,
  evalHeavy,
  straggler,
  lossNan,
  diverged,
  lossSpike,
  lossPlateau,
  gradExplosion,
  thermal,
  throttle,
  powerBrake,
  xid,
  ecc,
  remap,
  gpuLost,
  driverStuck,
  sourceStale,
  disk,
  // Last: the other findings about a run explain its end.
  runDied,
]
