/** All default thresholds: detectors use them, and the alert rules for Prometheus are made from them. */
const GIB = 1024 ** 3

/** Shares of the time of a phase: from `ratio` on information, from `warningRatio` on a warning, in `blocks` blocks of `steps` steps in a row. */
const EVERY_STEP = { ratio: 0.1, warningRatio: 0.2, firstSteps: 10, steps: 50, blocks: 2 }
const NOW_AND_THEN = { ratio: 0.1, warningRatio: 0.2, firstSteps: 10, steps: 10, blocks: 1 }

export const THRESHOLDS = {
  idleHolding: { minutes: 30, memoryBytes: GIB },
  intruder: {
    learnMinutes: 5,
    /** A process owns its GPU from this size and age on: what starts together belongs together. */
    holderMemoryBytes: GIB,
    holderSeconds: 5,
  },
  zombie: { seconds: 60, memoryBytes: 64 * 1024 * 1024 },
  stall: {
    stepTimes: 10,
    /** With a sample every 100 ms a stall is reported within ten step times and two seconds. */
    graceSeconds: 1.8,
    /** A GPU that keeps working without steps evaluates; longer than this is a warning anyway. */
    evaluationSeconds: 600,
    /** A GPU that just sent its state to the host saves a checkpoint, which may take this long. */
    checkpointSeconds: 30,
    /** A run may pause this long at the end of an epoch, at a round step, or while its process works on the host. */
    pauseSeconds: 120,
    /** Without reported steps: how hard and how long a GPU must have worked, and then idled. */
    busyRatio: 0.5,
    busySeconds: 10,
    quietSeconds: 10,
    longestPauseFactor: 3,
    /** From here on it is a warning, not information. */
    certainBusySeconds: 600,
    certainQuietSeconds: 300,
  },
  slowData: EVERY_STEP,
  copyBound: EVERY_STEP,
  syncBound: EVERY_STEP,
  checkpointHeavy: NOW_AND_THEN,
  evalHeavy: { ...NOW_AND_THEN, ratio: 0.2, warningRatio: 0.4 },
  thermal: {
    /** Below the card's own slowdown temperature. */
    marginCelsius: 5,
    /** Information only: modern cards are made for it. */
    noticeCelsius: 80,
    /** For cards that do not report their limit. */
    fallbackCelsius: 90,
    hysteresisCelsius: 3,
    holdSeconds: 30,
    criticalHoldSeconds: 5,
  },
  throttle: { holdSeconds: 30, powerCapHoldSeconds: 300 },
  powerBrake: { holdSeconds: 5 },
  xid: { activeMinutes: 10 },
  ecc: { correctedCount: 100, correctedWindowMinutes: 10, activeMinutes: 60 },
  remap: { settleSeconds: 10 },
  gpuLost: { settleSeconds: 5, errorHoldSeconds: 30, missingSeconds: 60, missingIntervals: 10 },
  driverStuck: {
    /** From this many restarts on, crashing is critical. */
    restarts: 3,
  },
  /** Seconds without a sample from a source that says it is ok: after which it is reported, and below which it ends. */
  sourceStale: { staleSeconds: 60, clearSeconds: 30 },
  /** Share of the disk of the log folder in use at which it is reported, ends, and is critical. */
  disk: { fullRatio: 0.95, clearRatio: 0.93, criticalRatio: 0.99 },
  lossNan: {
    /** Finite steps in a row that end the finding. */
    clearSteps: 20,
    /** Steps in a row with a bad gradient norm only; fewer are a loss scaler at work. */
    gradientSteps: 3,
  },
  /** A run that has not recovered by then is lost. */
  diverged: { criticalSeconds: 180 },
  /** How long it stays open when the run is not started again. */
  runDied: { activeMinutes: 60 },
  lossSpike: {
    z: 8,
    cusumSlack: 0.7,
    cusumLimit: 9,
    cusumClip: 6,
    medianSteps: 65,
    scaleSteps: 257,
    /** Noise below this share of the level is not believed. */
    scaleFloorRatio: 0.002,
    /** A smaller rise, as a share of the level or absolute, is not worth a warning. */
    leastRiseRatio: 0.08,
    leastRise: 0.25,
    /** Normal steps in a row that end the finding. */
    clearSteps: 20,
  },
  /** The older half of the blocks is compared with the newer half. */
  lossPlateau: { blockSteps: 100, blocks: 16, minImprovementRatio: 0.005 },
  /** One step above the certain norm is enough. */
  gradExplosion: { norm: 10, certainNorm: 100 },
  straggler: {
    ratio: 1.25,
    meanSteps: 10,
    /** Half of the log of 1.2, the change to be found: the best slack of a CUSUM. */
    cusumSlack: 0.09,
    /** Four steps of a rank that is a fifth slower pass it; two steps of any length do not, with the clip. */
    cusumLimit: 0.27,
    cusumClip: 0.22,
    clip: 0.4,
    baselineSteps: 30,
  },
  change: {
    /** log2 of present ÷ record from which a change is mentioned, and from which it is a warning. */
    inform: 1.25,
    alert: 2,
    /** A change that lasts this long is a warning: an evaluation, a checkpoint or a wait for data ends sooner. */
    confirmSeconds: 120,
    /** A change that stays this long is the new normal. */
    settleMinutes: 10,
  },
  /** Shares of the GPU's memory in use. */
  memory: { levelRatio: 0.8, levelGapRatio: 0.02, oomRatio: 0.85, fullRatio: 0.95, holdMinutes: 10 },
}

/** Options of the detector that these are the defaults of. */
export type Thresholds<Name extends keyof typeof THRESHOLDS> = Readonly<(typeof THRESHOLDS)[Name]>
