import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gone, group, LIBRARY, loader, mute, sleeper, TRAIN, view, waiter } from './hang.fixture.ts'
import { hangVerdict } from './hang-verdict.ts'
import type { RankView } from './standing.ts'

const ranks = (count: number, make: (rank: number) => RankView) => Array.from({ length: count }, (_, rank) => make(rank))

describe('a hang', () => {
  it('names the rank that the others wait for', () => {
    const verdict = hangVerdict(
      ranks(8, (rank) => (rank === 3 ? loader(rank, 41_210) : waiter(rank, 41_210))),
      8,
    )
    expect(verdict.sentence).toBe(
      'rank 3 (gpu 3) is in dataloader.py:1286 waiting for a worker (from train.py:77); 7 ranks wait for it in all_reduce #41,210',
    )
    expect(verdict).toMatchObject({ kind: 'behind', culprits: [3], place: 'dataloader.py:1286', isStuck: true })
  })

  it('of one program names its line', () => {
    const frames = [{ file: '/home/user/checkpoint.py', line: 88, function: 'save' }]
    const main = { name: 'MainThread', isMain: true, state: 'S', syscall: 'write', wchan: null, frames }
    const verdict = hangVerdict([view(0, frames, { threads: [main] })], 1)
    expect(verdict.sentence).toBe('main thread in checkpoint.py:88, writing')
    expect(verdict).toMatchObject({ kind: 'same_place', culprits: [0], isStuck: false })
    expect(hangVerdict([sleeper(0, 1)], 1)).toMatchObject({
      sentence: 'main thread in work.py:88, sleeping',
      isStuck: true,
    })
  })

  it('names a process that is gone, whatever the others do', () => {
    expect(hangVerdict([waiter(0, 5), gone(1), waiter(2, 5)], 3)).toMatchObject({
      kind: 'gone',
      culprits: [1],
      sentence: 'the process of rank 1 (gpu 1) is gone; 2 ranks wait for it in all_reduce #5',
    })
  })

  it('names ranks that do not answer while the others wait', () => {
    const held = { ...loader(1, 5), stacks: null }
    expect(hangVerdict([waiter(0, 5), held], 2).sentence).toBe(
      'rank 1 (gpu 1) does not answer; rank 0 (gpu 0) waits for it in all_reduce #5',
    )
    const thread = { name: 'python', isMain: true, state: 'D', syscall: null, wchan: 'nfs_wait_bit', frames: [] }
    const stuck = view(1, [], { from: 'proc', threads: [thread] })
    expect(hangVerdict([waiter(0, 5), stuck], 2).sentence).toMatch(
      /^rank 1 \(gpu 1\) does not answer, its main thread is stuck in the kernel \(nfs_wait_bit\)/,
    )
  })

  it('finds the end of a chain of groups', () => {
    // 0 and 1 wait for 2 in group A; 2 waits for 3 in group B; 3 sleeps.
    const a = (last: number, isOpen: boolean) => group(last, isOpen ? {} : null, { group: 'A' })
    const b = (last: number, isOpen: boolean) => group(last, isOpen ? { op: 'broadcast' } : null, { group: 'B' })
    const world = [
      waiter(0, 9, { collectives: [a(9, true)] }),
      waiter(1, 9, { collectives: [a(9, true)] }),
      waiter(2, 8, { collectives: [a(8, false), b(4, true)] }),
      { ...sleeper(3, 4), stacks: { ...(sleeper(3, 4).stacks as NonNullable<RankView['stacks']>), collectives: [b(3, false)] } },
    ]
    expect(hangVerdict(world, 4)).toMatchObject({ kind: 'behind', culprits: [3], waiting: [0, 1, 2] })
  })

  it('names what does not match', () => {
    const world = ranks(4, (rank) => waiter(rank, 12, { collectives: [group(12, { op: rank === 2 ? 'broadcast' : 'all_reduce' })] }))
    expect(hangVerdict(world, 4)).toMatchObject({ kind: 'mismatch', culprits: [2] })
    expect(hangVerdict(world, 4).sentence).toMatch(
      /^rank 2 \(gpu 2\) is in broadcast #12 of .*, ranks 0, 1 and 3 are in all_reduce #12 .*: these do not match$/,
    )
    const sizes = ranks(4, (rank) => waiter(rank, 12, { collectives: [group(12, { sizes: rank === 0 ? '[[9]]' : '[[8]]' })] }))
    expect(hangVerdict(sizes, 4)).toMatchObject({ kind: 'mismatch', culprits: [0] })
    const free = ranks(4, (rank) => waiter(rank, 12, { collectives: [group(12, { op: 'all_to_all', sizes: `[[${rank}]]` })] }))
    expect(hangVerdict(free, 4)).toMatchObject({ kind: 'all_wait' })
  })

  it('says so when all ranks are in one collective, and who is not known', () => {
    expect(
      hangVerdict(
        ranks(3, (rank) => waiter(rank, 7)),
        4,
      ).sentence,
    ).toBe('all 3 ranks wait in all_reduce #7, and all have called it: the network or a GPU is stuck; 1 of 4 ranks is not known here')
    expect(hangVerdict([], 4)).toMatchObject({ kind: 'unknown', sentence: 'no rank answers', isStuck: false })
  })

  it('takes the backward pass for a collective, unless a recorder says that nothing is open', () => {
    const frames = [{ file: `${LIBRARY}/autograd/graph.py`, line: 1113, function: '_engine_run_backward' }, TRAIN]
    expect(hangVerdict([view(0, frames), loader(1, 5)], 2).sentence).toMatch(/; rank 0 \(gpu 0\) waits for it in the backward pass$/)
    expect(hangVerdict([view(0, frames, { collectives: [group(4)] }), loader(1, 5)], 2)).toMatchObject({ waiting: [] })
  })

  it('is not stuck while somebody moves, saves or compiles', () => {
    const saving = [{ file: `${LIBRARY}/serialization.py`, line: 1, function: 'save' }, TRAIN]
    expect(hangVerdict([view(0, saving, { collectives: [group(4)] }), waiter(1, 5)], 2)).toMatchObject({ culprits: [0], isStuck: false })
    expect(hangVerdict([loader(0, 5, { moves: true }), waiter(1, 5)], 2)).toMatchObject({ culprits: [0], isStuck: false })
    expect(hangVerdict([loader(0, 5), waiter(1, 5, { moves: true })], 2)).toMatchObject({ isStuck: true })
  })
})

describe('in any world', () => {
  const world = fc
    .record({
      size: fc.integer({ min: 2, max: 64 }),
      seed: fc.array(fc.nat(), { minLength: 1, maxLength: 6 }),
      seq: fc.integer({ min: 1, max: 1e9 }),
    })
    .map(({ size, seed, seq }) => ({ size, seq, culprits: [...new Set(seed.map((one) => one % size))].sort((a, b) => a - b) }))
    .filter(({ size, culprits }) => culprits.length < size)

  it('blames those that have not joined, however many they are', () => {
    fc.assert(
      fc.property(world, fc.constantFrom(loader, sleeper), ({ size, culprits, seq }, make) => {
        const verdict = hangVerdict(
          ranks(size, (rank) => (culprits.includes(rank) ? make(rank, seq) : waiter(rank, seq))),
          size,
        )
        expect(verdict).toMatchObject({ kind: 'behind', culprits, isStuck: true })
        expect(verdict.waiting).toHaveLength(size - culprits.length)
        expect(verdict.sentence).toContain(`all_reduce #${seq.toLocaleString('en-US')}`)
      }),
    )
  })

  it('and by the stacks alone where there are no numbers', () => {
    fc.assert(
      fc.property(world, ({ size, culprits, seq }) => {
        const blind = (one: RankView): RankView => ({ ...one, stacks: one.stacks && { ...one.stacks, collectives: [] } })
        const made = ranks(size, (rank) => blind(culprits.includes(rank) ? loader(rank, seq) : waiter(rank, seq)))
        expect(hangVerdict(made, size)).toMatchObject({ kind: 'behind', culprits })
      }),
    )
  })

  it('blames the silent or the gone ones, in any order of the answers', () => {
    fc.assert(
      fc.property(world, fc.constantFrom(mute, gone), fc.boolean(), ({ size, culprits, seq }, make, isTurned) => {
        const made = ranks(size, (rank) => (culprits.includes(rank) ? make(rank) : waiter(rank, seq)))
        const verdict = hangVerdict(isTurned ? made.reverse() : made, size)
        expect(verdict).toMatchObject({ kind: make === gone ? 'gone' : 'silent', culprits })
      }),
    )
  })

  it('names the minority where nobody waits, and nobody where all are in one place', () => {
    fc.assert(
      fc.property(world, ({ size, culprits, seq }) => {
        fc.pre(culprits.length * 2 < size)
        const made = ranks(size, (rank) => sleeper(rank, seq, culprits.includes(rank) ? 12 : 88))
        expect(hangVerdict(made, size)).toMatchObject({ culprits })
        expect(
          hangVerdict(
            ranks(size, (rank) => sleeper(rank, seq)),
            size,
          ),
        ).toMatchObject({ kind: 'same_place', culprits: [] })
      }),
    )
  })

  it('always says something, of bounded length', () => {
    const any = fc.array(fc.tuple(fc.constantFrom(loader, waiter, sleeper, mute, gone), fc.integer({ min: 1, max: 5 })), { maxLength: 40 })
    fc.assert(
      fc.property(any, fc.option(fc.integer({ min: 1, max: 100 })), (made, worldSize) => {
        const { sentence, culprits, waiting } = hangVerdict(
          made.map(([make, seq], rank) => make(rank, seq)),
          worldSize,
        )
        expect(sentence).not.toMatch(/undefined|null|NaN/)
        expect(sentence.length).toBeLessThan(700)
        expect(culprits.filter((rank) => waiting.includes(rank))).toEqual([])
      }),
    )
  })
})
