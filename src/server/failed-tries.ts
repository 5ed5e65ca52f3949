/** Slows down guessing of tokens: a few attempts at once, then one every few seconds, per address. */
import { isIP } from 'node:net'
import { BoundedMap } from '../core/bounded-map.ts'
import { TokenBucket } from '../core/token-bucket.ts'

export interface FailedTriesOptions {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly burst?: number
  readonly refillMs?: number
  readonly maxAddresses?: number
}

export interface FailedTries {
  /** How long this address must wait before its next attempt; 0 when it need not. */
  waitMs(address: string): number
  count(address: string): void
  readonly size: number
}

export function createFailedTries({ now, burst = 10, refillMs = 6000, maxAddresses = 1024 }: FailedTriesOptions): FailedTries {
  const left = new BoundedMap<string, TokenBucket>(maxAddresses, { isRenewed: true })
  return {
    waitMs: (address) => left.get(networkOf(address))?.waitMs(now()) ?? 0,
    count(address) {
      const key = networkOf(address)
      left.keep(key, left.get(key) ?? new TokenBucket(burst, 1 / refillMs)).spend(now())
    },
    get size() {
      return left.size
    },
  }
}

/** One IPv6 subscriber has a whole /64, so that counts as one address. */
export function networkOf(address: string): string {
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address
  if (isIP(plain) !== 6) return plain
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  while (tail !== undefined && groups.length + after.length < 8) groups.push('0')
  return [...groups, ...after].slice(0, 4).join(':')
}
