/** What every channel has to do, whatever it speaks. Each kind brings a real counterpart that can be told how to behave. */
import { afterEach, describe, expect, it } from 'vitest'
import type { AlertMessage, Channel, Delivery } from '../core/alert-contract.ts'
import { group, heartbeat, hostile, late, message, resolved, test } from './alert-message.fixture.ts'

export type Behavior =
  /** Takes it. */
  | 'ok'
  /** Says no, for good. */
  | 'refuse'
  /** Says: not now. */
  | 'later'
  /** Never answers. */
  | 'hang'
  /** Breaks the connection off. */
  | 'drop'
  /** Is not there at all. */
  | 'down'
  /** Refuses, and repeats every secret it was given. */
  | 'echo'

export interface Stand {
  /** Opened with a time limit of 400 ms in `hang`, a generous one else. */
  readonly channel: Channel
  readonly secrets: readonly string[]
  /** Part of the counterpart's own words when it takes something. */
  readonly says: string
  /** Everything it was given so far, as text. */
  received(): string
  close(): Promise<void>
}

export function channelContract(name: string, build: (behavior: Behavior) => Promise<Stand>): void {
  describe(`${name} keeps the contract`, () => {
    let stand: Stand | null = null
    const stop = new AbortController()
    const deliver = async (behavior: Behavior, what: AlertMessage = message): Promise<Delivery> => {
      stand = await build(behavior)
      return stand.channel.deliver(what, stop.signal)
    }
    afterEach(async () => {
      await stand?.close()
      stand = null
    })

    it('delivers, and hands on what the other side said', async () => {
      const delivery = await deliver('ok')
      expect(delivery).toMatchObject({ ok: true, answer: expect.stringContaining(stand?.says ?? '') })
      expect(stand?.received()).not.toBe('')
    })

    it.each([
      ['refuse', false],
      ['later', true],
      ['drop', true],
      ['down', true],
      ['hang', true],
    ] as const)('judges "%s": another try can help is %s', async (behavior, retry) => {
      const delivery = await deliver(behavior)
      expect(delivery).toMatchObject({ ok: false, retry })
      expect(delivery.ok || delivery.reason.length).toBeGreaterThan(8)
    })

    it('stops when asked, and reports that it may be retried', async () => {
      const cancel = new AbortController()
      stand = await build('hang')
      const delivering = stand.channel.deliver(message, cancel.signal)
      cancel.abort()
      expect(await delivering).toMatchObject({ ok: false, retry: true })
    })

    it('does not begin when asked to stop before', async () => {
      stand = await build('ok')
      expect(await stand.channel.deliver(message, AbortSignal.abort())).toMatchObject({ ok: false, retry: true })
    })

    it.each(['ok', 'echo', 'down'] as const)('shows no secret (%s)', async (behavior) => {
      for (const what of [message, test]) {
        const delivery = await deliver(behavior, what)
        const shown = delivery.ok ? delivery.answer : delivery.reason
        for (const secret of stand?.secrets ?? []) {
          expect(shown).not.toContain(secret)
          expect(shown).not.toContain(Buffer.from(secret).toString('base64').replace(/=+$/, ''))
        }
        await stand?.close()
      }
    })

    it('never sends the command line of a process', async () => {
      await deliver('ok')
      expect(stand?.received()).not.toContain('COMMANDLINESECRET')
    })

    it.each([
      ['a resolved one', resolved],
      ['a late one', late],
      ['a test', test],
      ['a heartbeat', heartbeat],
      ['thirty at once', group],
    ])('delivers %s', async (_, what) => {
      expect(await deliver('ok', what)).toMatchObject({ ok: true })
    })

    it('delivers hostile text without letting it be more than text', async () => {
      expect(await deliver('ok', hostile)).toMatchObject({ ok: true })
      const received = stand?.received() ?? ''
      expect(received).not.toMatch(/^Bcc:/im)
      for (const sign of ['\u202e', '\u0000', '\u001b', '\\u0000', '\\u001b', '\\r']) expect(received).not.toContain(sign)
      expect(received).not.toContain('javascript:')
    })
  })
}
