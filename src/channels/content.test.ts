import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { alert, finding, group, heartbeat, hostile, late, message, NOW, resolved, test } from './alert-message.fixture.ts'
import { contentOf } from './content.ts'
import { htmlOf } from './content-html.ts'
import { fullText, shortText, subjectOf } from './content-text.ts'
import { evidenceFacts, moment } from './evidence.ts'
import { cut, cutBytes, oneLine, safeLink } from './plain-text.ts'

const subject = (what: typeof message) => subjectOf(contentOf(what))

describe('subject', () => {
  it('names severity, place and problem in words to filter by', () => {
    expect(subject(message)).toMatch(/^\[gpuwarden\] CRITICAL box GPU 0: memory leak: Memory of process 4242/)
    expect(subject(resolved)).toMatch(/^\[gpuwarden\] RESOLVED box GPU 0: memory leak/)
    expect(subject(late)).toMatch(/^\[gpuwarden\] LATE CRITICAL box GPU 0/)
    expect(subject({ ...message, alerts: [{ ...alert, status: 'repeat' }] })).toMatch(/^\[gpuwarden\] STILL CRITICAL box/)
    expect(subject(test)).toBe('[gpuwarden] TEST box: alerts arrive here')
    expect(subject(heartbeat)).toBe('[gpuwarden] ALIVE box: gpuwarden is watching')
    expect(subject(group)).toMatch(/^\[gpuwarden\] SIMULATED CRITICAL box: 30 alerts \(memory leak, thermal; GPU 0, GPU 1/)
  })

  it('is one short line, whatever the names are', () => {
    expect(subject(hostile)).not.toMatch(/[\r\n]/)
    expect(subject(hostile).length).toBeLessThan(160)
  })
})

describe('body', () => {
  it('answers what, where, since when, how sure and what to do', () => {
    const text = fullText(contentOf(message))
    for (const expected of [
      'CRITICAL: Memory of process 4242 on GPU 0 grows',
      /Host: +box/,
      /GPU: +0 NVIDIA H200 \(GPU-5f2c\)/,
      /Process: +4242 python \(\/usr\/bin\/python3\)/,
      /Owner: +alice/,
      /Container: +docker:4f1c2a/,
      /Slurm job: +991/,
      /Run: +llama-7b rank 0/,
      /Since: .*\(25 min ago\)/,
      /Expected: .*\(in 1 h 25 min\), at the earliest in 1 h 10 min, at the latest in 1 h 50 min/,
      /Confidence: +92%, risk high/,
      'growth: 9.6 GiB/h',
      'used: 83%',
      'What to do next',
      'Web UI: http://box:4780/#/alerts',
      'Silence: http://box:4780/#/silence?fingerprint=leak%7Cgpu',
    ])
      expect(text).toMatch(expected)
  })

  it('says that it is late, simulated, delayed or not all', () => {
    expect(fullText(contentOf(late))).toMatch(/Delayed by 25 min[\s\S]*Cleared: .*after 15 min[\s\S]*fired and cleared before/)
    const many = fullText(contentOf(group))
    expect(many).toContain('SIMULATED')
    expect(many).toContain('7 more alerts were held back')
  })

  it.each([2, 20, 21, 30, 50])('names each of %i alerts, as mail and as a web page', (count) => {
    const alerts = Array.from({ length: count }, (_, index) => {
      const detector = index % 3 === 0 ? 'loss_nan' : 'thermal'
      return { ...alert, fingerprint: `f${index}`, finding: { ...finding, detector, message: `Number ${index} is wrong.` } }
    })
    const content = contentOf({ ...message, alerts })
    for (const text of [fullText(content), htmlOf(content, new Map())]) {
      const named = alerts.filter((one) => text.includes(one.finding.message))
      expect(named.length).toBe(count)
      expect(text).not.toContain('more alerts')
    }
    if (count > 21) expect(fullText(content)).toMatch(/\nthermal \(\d+\)\n/)
  })

  it('counts in a short message what there was no room for', () => {
    for (const most of [300, 1000, 2400, 6000]) {
      const text = shortText(contentOf({ ...group, suppressed: 0 }), most)
      const named = text.split('\n').filter((line) => line.startsWith('CRITICAL')).length
      const more = Number(/and (\d+) more/.exec(text)?.[1] ?? 0)
      expect(named + more).toBe(30)
      expect(text.length).toBeLessThanOrEqual(most)
    }
  })

  it('gives no advice and no forecast for what is over', () => {
    const text = fullText(contentOf(resolved))
    expect(text).not.toContain('What to do next')
    expect(text).not.toContain('Expected:')
  })

  it('leaves out what is not known', () => {
    const nobody = { host: null, gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null }
    const bare = {
      ...message,
      alerts: [{ ...alert, gpuLabel: null, gpuName: null, process: null, series: null, finding: { ...finding, subject: nobody } }],
    }
    const text = fullText(contentOf(bare))
    expect(text).toMatch(/Host: +box/)
    expect(text).not.toMatch(/GPU:|Process:|Owner:|null|undefined/)
    expect(subject(bare)).toMatch(/^\[gpuwarden\] CRITICAL box: memory leak/)
  })

  it('fits where it has to', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 500 }), (most) => shortText(contentOf(group), most).length <= most))
  })
})

describe('html', () => {
  it('shows its charts by content id and follows only real links', () => {
    const html = htmlOf(contentOf(message), new Map([[0, { cid: 'chart-0@gpuwarden', width: 600, height: 190, alt: 'Memory' }]]))
    expect(html).toContain('src="cid:chart-0@gpuwarden"')
    expect(html).toContain('href="http://box:4780/#/alerts"')
    expect(html).not.toMatch(/<script|<link|@import/)
  })

  it('lets no text become markup', () => {
    const html = htmlOf(contentOf(hostile), new Map([[0, { cid: '"><script>', width: 1, height: 1, alt: '"><script>' }]]))
    expect(html).not.toMatch(/<script|<img src=x|onerror=alert\(1\)>|javascript:/)
    expect(html.match(/<img /g)).toHaveLength(1)
  })
})

describe('evidence', () => {
  it('takes the unit from the end of the name', () => {
    const shown = evidenceFacts(
      {
        memory_used_bytes: 1024 ** 3 * 1.5,
        idle_seconds: 7200,
        wait_seconds: 0.35,
        sm_ratio: 0.256,
        celsius: 91,
        power_watts: 412.34,
        last_sample_at: NOW - 60_000,
        gradient_norm: 123.456,
        holder: 'bob',
        per_process: false,
        nothing: null,
      },
      NOW,
    )
    expect(shown.map(({ label, value }) => `${label}=${value.replace(/^2026.*\(/, '(')}`)).toEqual([
      'memory used=1.5 GiB',
      'idle=2 h',
      'wait=350 ms',
      'sm=26%',
      'celsius=91 °C',
      'power=412.3 W',
      'last sample=(1 min ago)',
      'gradient norm=123.5',
      'holder=bob',
      'per process=no',
    ])
  })

  it('is bounded, and survives nonsense', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, index]))
    expect(evidenceFacts(many, NOW)).toHaveLength(24)
    expect(moment(Number.NaN, NOW)).toBe('unknown')
    expect(moment(1e300, NOW)).toBe('unknown')
  })
})

describe('plain text', () => {
  it('is one line of bounded length for any input', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 50 }), (text, most) => {
        const line = oneLine(text, most)
        expect(line).not.toMatch(/[\r\n\u2028\u2029]/)
        expect(line.length).toBeLessThanOrEqual(most)
        expect(cut(text, most).length).toBeLessThanOrEqual(most)
        expect(Buffer.byteLength(cutBytes(text, 40))).toBeLessThanOrEqual(40)
      }),
    )
  })

  it.each([
    ['http://box:4780/a?b=c#d', 'http://box:4780/a?b=c#d'],
    ['https://[::1]:4780/x', 'https://[::1]:4780/x'],
    ['http://box/a|b)c', 'http://box/a%7Cb%29c'],
    ['javascript:alert(1)', null],
    ['http://user:pass@box/', null],
    ['box', null],
  ])('follows %s as %s', (link, expected) => {
    expect(safeLink(link)).toBe(expected)
  })
})
