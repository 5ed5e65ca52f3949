/** All ranks wait for the exchange of gradients. Where one rank does not wait, the others wait for that one: see straggler. */
import { phaseShare } from './phase-share.ts'
import { THRESHOLDS } from './thresholds.ts'

export const syncBound = phaseShare({
  name: 'sync_bound',
  about: 'All ranks of a run spend a large part of each step exchanging gradients.',
  phase: 'sync',
  leastOfRanks: true,
  says: (run, share, seconds) =>
    `Run ${run} is communication-bound: every rank spends at least ${share} of each step in sync (${seconds}).`,
  over: (run, share) => `Run ${run} spends only ${share} of each step in sync now.`,
  advice: () => [
    'Accumulate gradients over several batches (no_sync), use larger batches or gradient compression, and check which network NCCL uses (NCCL_DEBUG=INFO).',
  ],
  defaults: THRESHOLDS.syncBound,
})
