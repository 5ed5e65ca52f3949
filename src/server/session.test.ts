import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createGate } from './gate.ts'
import { cookieName, createSessions, SESSION_SECONDS, sessionCookies, setCookie } from './session.ts'

const NOW = 1_760_000_000_000

describe('sessions', () => {
  it('last thirty days, over a restart, and end with the token', () => {
    let now = NOW
    const sessions = createSessions('a-first-token', () => now)
    const { value, expiresAt } = sessions.issue()
    expect(expiresAt).toBe(NOW + SESSION_SECONDS * 1000)
    expect(createSessions('a-first-token', () => now).isValid(value)).toBe(true)
    expect(createSessions('a-second-token', () => now).isValid(value)).toBe(false)
    now = expiresAt - 1
    expect(sessions.isValid(value)).toBe(true)
    now = expiresAt
    expect(sessions.isValid(value)).toBe(false)
    expect(sessions.issue().value).not.toBe(sessions.issue().value)
  })

  it('cannot be made up: no other text is valid, not even one character away', () => {
    const sessions = createSessions('a-first-token', () => NOW)
    const { value } = sessions.issue()
    const [expiry = '', nonce = '', signature = ''] = value.split('.')
    for (const wrong of [
      '',
      '..',
      `${Number(expiry) + 1}.${nonce}.${signature}`,
      `0${expiry}.${nonce}.${signature}`,
      `${expiry}.${nonce}.${'A'.repeat(43)}`,
      `${expiry}.${nonce}.=?!${signature.slice(3)}`,
      `${expiry}.${nonce}.${signature}=`,
      `${value}.${value}`,
      'x'.repeat(100_000),
    ])
      expect(sessions.isValid(wrong), wrong.slice(0, 80)).toBe(false)
    fc.assert(
      fc.property(fc.nat(value.length - 1), fc.constantFrom(...'AZaz09_-.='), (place, character) => {
        const changed = value.slice(0, place) + character + value.slice(place + 1)
        expect(sessions.isValid(changed)).toBe(changed === value)
      }),
    )
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => !sessions.isValid(text)))
  })
})

describe('the cookie', () => {
  const place = (host: string, cookie?: string, origin?: string) => ({
    headers: { host, ...(cookie === undefined ? {} : { cookie }), ...(origin === undefined ? {} : { origin }) },
    localPort: 4780,
  })

  it('has the port in its name, because browsers share cookies between ports', () => {
    expect(cookieName(place('localhost:4780'))).toBe('gpuwarden_session_4780')
    expect(cookieName(place('[::1]:4781'))).toBe('gpuwarden_session_4781')
    expect(cookieName(place('gpu.example'))).toBe('gpuwarden_session_4780')
  })

  it('is found among others, each time it is there', () => {
    const header = 'a=b; gpuwarden_session_4780=one;gpuwarden_session_4781=other; gpuwarden_session_4780=two; xgpuwarden_session_4780=no'
    expect(sessionCookies(place('localhost:4780', header))).toEqual(['one', 'two'])
    expect(sessionCookies(place('localhost:4780'))).toEqual([])
  })

  it('is for this server alone and out of reach of scripts', () => {
    expect(setCookie(place('localhost:4780'), 'v')).toBe('gpuwarden_session_4780=v; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict')
    expect(setCookie(place('gpu.example', undefined, 'https://gpu.example'), '')).toBe(
      'gpuwarden_session_4780=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure',
    )
  })
})

describe('the gate with sessions', () => {
  it('takes any valid one, and counts a wrong one as none', () => {
    const gate = createGate('correct-horse', { monotonic: () => 0, now: () => NOW })
    const entered = gate.signIn('a', 'correct-horse')
    const value = entered.ok ? (entered.session?.value ?? '') : ''
    expect(gate.check('a', undefined, ['wrong', value])).toEqual({ ok: true })
    for (let n = 0; n < 50; n++) expect(gate.check('a', undefined, ['wrong'])).toEqual({ ok: false, code: 'missing_token' })
    expect(gate.check('a', 'Bearer correct-horse')).toEqual({ ok: true })
    expect(gate.check('a', 'Bearer wrong', [value])).toEqual({ ok: false, code: 'wrong_token' })
  })

  it('counts tries of both ways together', () => {
    const gate = createGate('correct-horse', { monotonic: () => 0, now: () => NOW })
    for (let n = 0; n < 5; n++) {
      expect(gate.signIn('a', `guess-${n}`)).toEqual({ ok: false, code: 'wrong_token' })
      expect(gate.check('a', `Bearer guess-${n}`)).toEqual({ ok: false, code: 'wrong_token' })
    }
    expect(gate.signIn('a', 'guess')).toMatchObject({ code: 'too_many_attempts' })
    expect(gate.signIn('a', 'correct-horse')).toMatchObject({ ok: true })
    expect(gate.check('a', 'Bearer correct-horse')).toEqual({ ok: true })
    expect(gate.signIn('b', 'correct-horse')).toMatchObject({ ok: true })
  })

  it('asks for nothing when no token is configured', () => {
    const gate = createGate(null)
    expect([gate.required, gate.check('a', undefined), gate.signIn('a', 'any')]).toEqual([false, { ok: true }, { ok: true, session: null }])
  })
})
