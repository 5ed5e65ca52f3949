import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MetricFamily } from '../core/metric-family.ts'
import { readWriteRequest } from './protobuf.fixture.ts'
import { RemoteWriteEncoder } from './remote-write.ts'
import { unsnappy } from './snappy.fixture.ts'

const page = (...series: (readonly [labels: Readonly<Record<string, string>>, value: number])[]): MetricFamily[] => [
  {
    name: 'a',
    type: 'gauge',
    help: 'b',
    series: series.map(([labels, value]) => ({ name: 'a', labels: Object.entries(labels), value, key: JSON.stringify(labels) })),
  },
]
const AT = 1_760_000_000_123

describe('RemoteWriteEncoder', () => {
  it('sends every series with its own labels and ours, sorted, an empty one left out', () => {
    const encoder = new RemoteWriteEncoder({ job: 'gpuwarden', instance: 'node-1', zone: 'b' })
    const { body, samples } = encoder.encode(page([{ name: 'H200 Ümlaut', gpu: '0', pid: '' }, 1.5], [{ instance: 'own' }, Number.NaN]), AT)
    expect(samples).toBe(2)
    const [first, second] = readWriteRequest(unsnappy(body))
    expect(first?.labels).toEqual({ __name__: 'a', gpu: '0', instance: 'node-1', job: 'gpuwarden', name: 'H200 Ümlaut', zone: 'b' })
    expect(first).toMatchObject({ value: 1.5, timestamp: AT })
    expect(second?.labels.instance).toBe('own')
    expect(second?.value).toBeNaN()
    expect(second?.bits).not.toBe(0x7ff0000000000002n)
  })

  it('says once of a series that is gone that it is', () => {
    const encoder = new RemoteWriteEncoder({})
    encoder.encode(page([{ gpu: '0' }, 1], [{ gpu: '1' }, 1]), AT)
    const gone = readWriteRequest(unsnappy(encoder.encode(page([{ gpu: '0' }, 1]), AT + 1).body))
    expect(gone.map(({ labels, bits }) => [labels.gpu, bits])).toEqual([
      ['0', 0x3ff0000000000000n],
      ['1', 0x7ff0000000000002n],
    ])
    expect(encoder.encode(page([{ gpu: '0' }, 1]), AT + 2).samples).toBe(1)
    expect(encoder.farewell(AT + 3).samples).toBe(1)
    expect(encoder.farewell(AT + 4).samples).toBe(0)
  })

  it('keeps every number and text', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), fc.string({ unit: 'grapheme', minLength: 1 }), (value, text) => {
        const families = [{ name: 'a', type: 'gauge', help: '', series: [{ name: 'a', labels: [['x', text]], value, key: 'k' }] }] as const
        const [series] = readWriteRequest(unsnappy(new RemoteWriteEncoder({}).encode(families, AT).body))
        expect(Object.is(series?.value, value)).toBe(true)
        expect(series?.labels.x).toBe(text.toWellFormed())
      }),
    )
  })
})
