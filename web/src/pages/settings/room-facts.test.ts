import { expect, it } from 'vitest'
import { roomFacts } from './room-facts.ts'

it('makes lines of whatever a part says of itself', () => {
  const room = {
    state: 'ok',
    reason: null,
    bytesWritten: 3 * 1024 ** 2,
    pendingBytes: 2 * 1024 ** 2,
    oldestAgeMs: 90_000,
    soleWriter: true,
    currentFiles: ['a.jsonl', 'b.jsonl'],
    alerts: { firing: 2 },
    channels: [{ channel: 'mail' }],
  }
  expect(roomFacts(room, 0).map(({ label, value }) => `${label}: ${value}`)).toEqual([
    'state: ok',
    'reason: none',
    'bytes written: 3.0 MiB',
    'pending: 2.0 MiB',
    'oldest age: 1 min 30 s',
    'sole writer: yes',
    'current files: a.jsonl, b.jsonl',
    'alerts firing: 2',
  ])
  expect(roomFacts(null, 0)).toEqual([])
})
