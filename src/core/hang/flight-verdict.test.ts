import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { flightDump } from './flight-dump.ts'
import { flightVerdict } from './flight-verdict.ts'

type Entry = Readonly<Record<string, unknown>>

const entry = (seq: number, more: Entry = {}): Entry => ({
  process_group: ['0', 'default_pg'],
  collective_seq_id: seq,
  p2p_seq_id: 0,
  profiling_name: 'nccl:all_reduce',
  input_sizes: [[110]],
  input_dtypes: ['Float'],
  state: 'completed',
  retired: true,
  is_p2p: false,
  time_created_ns: 1_760_000_000_000_000_000,
  frames: [
    { filename: '/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py', line: 9, name: 'all_reduce' },
    { filename: '/app/train.py', line: 77, name: 'step' },
  ],
  ...more,
})

const OPEN = { state: 'started', retired: false }

function dump(rank: number, entries: readonly Entry[], ranks = '[0, 1, 2, 3]') {
  const made = flightDump(rank, { version: '2.10', pg_config: { '0': { name: '0', desc: 'default_pg', ranks } }, pg_status: {}, entries })
  if (!made) throw new Error('no dump')
  return made
}

/** Four ranks with five collectives; `odd` is the fifth of rank 2, null: it has none. */
function world(odd: Entry | null, usual: Entry = OPEN) {
  const before = [1, 2, 3, 4].map((seq) => entry(seq))
  return [0, 1, 2, 3].map((rank) => dump(rank, rank === 2 ? [...before, ...(odd ? [entry(5, odd)] : [])] : [...before, entry(5, usual)]))
}

describe('dumps of the flight recorder', () => {
  it('name a rank that has not called what the others are in', () => {
    const { groups, culprits, ranks } = flightVerdict(world(null))
    expect({ ranks, culprits }).toEqual({ ranks: [0, 1, 2, 3], culprits: [2] })
    expect(groups).toMatchObject([
      {
        group: '0',
        from: 1,
        to: 5,
        matching: 4,
        fault: { kind: 'missing', seq: 5, ranks: [2], others: [0, 1, 3], lastSeq: 4, place: 'train.py:77 in step' },
      },
    ])
  })

  it.each([
    ['collective', { ...OPEN, profiling_name: 'nccl:broadcast' }],
    ['size', { ...OPEN, input_sizes: [[111]] }],
    ['type', { ...OPEN, input_dtypes: ['Half'] }],
    ['state', {}],
  ] as const)('name a different %s', (kind, odd) => {
    const { groups, culprits } = flightVerdict(world(odd))
    expect(groups[0]?.fault).toMatchObject({ kind, seq: 5, ranks: [2], others: [0, 1, 3] })
    expect(culprits).toEqual([2])
  })

  it('find nothing where all match, and say what is open', () => {
    expect(flightVerdict(world({}, {}))).toMatchObject({ culprits: [], groups: [{ fault: null, open: null, matching: 5 }] })
    expect(flightVerdict(world(OPEN))).toMatchObject({ culprits: [], groups: [{ fault: null, open: { seq: 5 } }] })
  })

  it('compare only what no ring buffer has forgotten, and name members without a file', () => {
    const [a, b] = [dump(0, [entry(90), entry(91, OPEN)]), dump(1, [entry(88), entry(89), entry(90)])]
    expect(flightVerdict([a, b]).groups).toMatchObject([
      { from: 90, to: 91, matching: 1, unread: [2, 3], fault: { kind: 'missing', ranks: [1] } },
    ])
  })

  it('blame the end of a chain of groups', () => {
    const other = { process_group: ['1', 'tp'] }
    // 0 waits for 1 in group 0, 1 waits for 2 in group 1.
    const dumps = [
      dump(0, [entry(1), entry(2, OPEN)], '[0, 1]'),
      dump(1, [entry(1), entry(1, other), entry(2, { ...other, ...OPEN })], '[0, 1]'),
      dump(2, [entry(1, other)], '[0, 1]'),
    ]
    expect(flightVerdict(dumps).culprits).toEqual([2])
  })

  it('of any world, name who is behind', () => {
    const any = fc.record({
      size: fc.integer({ min: 2, max: 24 }),
      last: fc.integer({ min: 2, max: 40 }),
      odd: fc.nat(),
      kept: fc.integer({ min: 3, max: 50 }),
    })
    fc.assert(
      fc.property(any, ({ size, last, odd, kept }) => {
        const culprit = odd % size
        const dumps = Array.from({ length: size }, (_, rank) => {
          const done = Array.from({ length: last - 1 }, (_, index) => entry(index + 1))
          const all = rank === culprit ? done : [...done, entry(last, OPEN)]
          return dump(rank, all.slice(-kept), JSON.stringify(Array.from({ length: size }, (_, one) => one)))
        })
        const verdict = flightVerdict(dumps)
        expect(verdict.culprits).toEqual([culprit])
        expect(verdict.groups[0]?.fault).toMatchObject({ kind: 'missing', seq: last })
      }),
    )
  })

  it('are not made of anything', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => flightDump(0, value) === null || flightVerdict([flightDump(0, value) as never]) !== null),
    )
    expect(flightDump(0, { segments: [] })).toBeNull()
  })
})
