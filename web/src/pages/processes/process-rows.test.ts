import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ProcessView } from '../../../../src/core/model.ts'
import {
  COLUMNS,
  filterRows,
  keepOrder,
  nextOrder,
  orderText,
  type ProcessRow,
  parseOrder,
  rowOf,
  sortRows,
  USUAL_ORDER,
} from './process-rows.ts'

function row(
  pid: number,
  gpuLabel: string,
  figures: { memory?: number | null; user?: string | null; command?: string[] } = {},
): ProcessRow {
  const { memory = null, user = 'ada', command = ['python', 'train.py'] } = figures
  const info =
    user === null
      ? null
      : { user, name: 'python', command, executable: '/usr/bin/python3', container: 'docker:4f1c9a', pod: null, slurmJob: null }
  const process = { pid, gpu: `GPU-${gpuLabel}`, type: 'compute', memoryUsedBytes: memory, smRatio: null, info } as unknown as ProcessView
  return rowOf(process, gpuLabel, true, pid === 13 ? [{ label: 'intruder', tone: 'critical', words: 'x' }] : [])
}

const pids = (rows: readonly ProcessRow[]) => rows.map(({ process }) => process.pid)

describe('sortRows', () => {
  const rows = [row(1, '0', { memory: 5 }), row(2, '10', { memory: null }), row(3, '2', { memory: 9 })]

  it('puts the unknown last in either direction', () => {
    expect(pids(sortRows(rows, { column: 'memory', isDescending: true }))).toEqual([3, 1, 2])
    expect(pids(sortRows(rows, { column: 'memory', isDescending: false }))).toEqual([1, 3, 2])
  })

  it('counts in names: GPU 2 comes before GPU 10', () => {
    expect(pids(sortRows(rows, { column: 'gpu', isDescending: false }))).toEqual([1, 3, 2])
  })

  it('sorts by every column, loses nothing, and comes to the same from any beginning', () => {
    const some = fc.array(
      fc.tuple(fc.integer({ min: 1, max: 30 }), fc.constantFrom('0', '1', '0:2'), fc.option(fc.nat(3), { nil: null })),
      { maxLength: 20 },
    )
    fc.assert(
      fc.property(some, fc.constantFrom(...COLUMNS), fc.boolean(), (list, { name }, isDescending) => {
        const unique = [...new Map(list.map(([pid, gpu, memory]) => [`${pid}@${gpu}`, row(pid, gpu, { memory })])).values()]
        const sorted = sortRows(unique, { column: name, isDescending })
        const again = sortRows([...unique].reverse(), { column: name, isDescending })
        return sorted.length === unique.length && sorted.every((one, index) => one.key === again[index]?.key)
      }),
    )
  })
})

describe('the order in the address', () => {
  it('comes back as it went, for every column', () => {
    for (const { name } of COLUMNS)
      for (const isDescending of [true, false])
        expect(parseOrder(orderText({ column: name, isDescending }))).toEqual({ column: name, isDescending })
  })

  it('is the usual one when the address says nothing or nonsense', () => {
    expect(parseOrder(undefined)).toEqual(USUAL_ORDER)
    expect(parseOrder('-nonsense')).toEqual(USUAL_ORDER)
  })

  it('begins with the largest figure or the first name, and turns round', () => {
    const [user, memory] = ['user', 'memory'].map((name) => COLUMNS.find((column) => column.name === name))
    if (!user || !memory) throw new Error('columns are missing')
    expect(nextOrder(USUAL_ORDER, user)).toEqual({ column: 'user', isDescending: false })
    expect(nextOrder({ column: 'user', isDescending: false }, user)).toEqual({ column: 'user', isDescending: true })
    expect(nextOrder({ column: 'user', isDescending: false }, memory)).toEqual({ column: 'memory', isDescending: true })
  })
})

describe('keepOrder', () => {
  it('keeps the places that were, and puts newcomers at the end', () => {
    const rows = [row(9, '0'), row(1, '0'), row(2, '0'), row(3, '0')]
    expect(pids(keepOrder(rows, ['2@0', '4@0', '1@0']))).toEqual([2, 1, 9, 3])
  })
})

describe('filterRows', () => {
  const rows = [row(13, '0'), row(133, '1', { user: 'bob', command: ['node', 'x.js'] }), row(4, '0:2', { user: null })]

  it('finds words in the PID, the user, the command, the container and the marks', () => {
    expect(pids(filterRows(rows, '13'))).toEqual([13, 133])
    expect(pids(filterRows(rows, 'BOB'))).toEqual([133])
    expect(pids(filterRows(rows, 'train.py'))).toEqual([13])
    expect(pids(filterRows(rows, '4f1c'))).toEqual([13, 133])
    expect(pids(filterRows(rows, 'intruder'))).toEqual([13])
    expect(pids(filterRows(rows, '  '))).toEqual([13, 133, 4])
  })

  it('wants every word, and takes a named field exactly', () => {
    expect(pids(filterRows(rows, 'python ada'))).toEqual([13])
    expect(pids(filterRows(rows, 'pid:13'))).toEqual([13])
    expect(pids(filterRows(rows, 'gpu:0'))).toEqual([13])
    expect(pids(filterRows(rows, 'gpu:0:2'))).toEqual([4])
    expect(pids(filterRows(rows, 'user:bo'))).toEqual([])
  })
})
