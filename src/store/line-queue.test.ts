import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LineQueue } from './line-queue.ts'

describe('the queue of lines', () => {
  it('behaves like an array, and knows its bytes', () => {
    const action = fc.oneof(
      fc.record({ do: fc.constant('push' as const), text: fc.string({ unit: 'grapheme' }) }),
      fc.record({ do: fc.constant('shift' as const) }),
      fc.record({ do: fc.constant('retry' as const), bytes: fc.nat(20), written: fc.nat(3) }),
    )
    const property = fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
      const queue = new LineQueue()
      let model: string[] = []
      for (const step of actions) {
        if (step.do === 'push') {
          queue.push(step.text, 1)
          model.push(step.text)
        } else if (step.do === 'shift') expect(queue.shift()?.text).toBe(model.shift())
        else {
          const taken = queue.take(step.bytes)
          expect(taken.map((line) => line.text)).toEqual(model.slice(0, taken.length))
          if (model.length > 0) expect(taken.length).toBeGreaterThan(0)
          queue.putBack(taken.slice(step.written))
          model = [...taken.slice(step.written).map((line) => line.text), ...model.slice(taken.length)]
        }
        expect(queue.length).toBe(model.length)
        expect(queue.bytes).toBe(Buffer.byteLength(model.join('')))
      }
    })
    fc.assert(property)
  })

  it('keeps its order over thousands of lines', () => {
    const queue = new LineQueue()
    for (let line = 0; line < 5000; line++) queue.push(String(line), line)
    for (let line = 0; line < 4000; line++) expect(queue.shift()?.at).toBe(line)
    queue.push('last', 5000)
    expect(queue.take(1e9).map((line) => line.at)).toEqual(Array.from({ length: 1001 }, (_, index) => 4000 + index))
  })
})
