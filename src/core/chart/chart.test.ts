import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ChartSpec, renderChart } from './chart.ts'
import { PALETTE } from './palette.ts'
import { stack, thin } from './paths.ts'

const GIBIBYTE = 1024 ** 3
const START = Date.UTC(2026, 2, 1, 1, 10)
const at = Array.from({ length: 60 }, (_, index) => START + index * 60_000)
const used = at.map((_, index) => (index > 20 && index < 24 ? null : (40 + index * 0.4) * GIBIBYTE))

const SPECS: Readonly<Record<string, ChartSpec>> = {
  line: {
    width: 560,
    height: 180,
    title: 'Memory of GPU 0',
    unit: 'bytes',
    at,
    series: [{ name: 'memory used', values: used, fill: true }],
    limits: [{ value: 80 * GIBIBYTE, label: 'capacity 80 GiB' }],
    marks: [{ at: START + 1_800_000, label: 'leak', severity: 'critical' }],
    timeZone: 'UTC',
  },
  fan: {
    width: 900,
    height: 400,
    title: 'Forecast',
    unit: 'bytes',
    at,
    series: [
      {
        name: 'used',
        values: used,
        min: used.map((value) => value && value - GIBIBYTE),
        max: used.map((value) => value && value + GIBIBYTE),
      },
    ],
    forecast: {
      name: 'forecast',
      at: [START + 3_540_000, START + 7_200_000],
      values: [63 * GIBIBYTE, 80 * GIBIBYTE],
      low: [63 * GIBIBYTE, 74 * GIBIBYTE],
      high: [63 * GIBIBYTE, 88 * GIBIBYTE],
    },
    timeZone: 'UTC',
  },
  stacked: {
    width: 320,
    height: 120,
    title: 'Ledger',
    unit: 'bytes',
    at: at.slice(0, 4),
    stacked: true,
    series: [
      { name: 'weights', values: [1, 1, 1, null].map((value) => value && value * GIBIBYTE) },
      { name: 'cache', values: [2, null, 4, null].map((value) => value && value * GIBIBYTE) },
    ],
    timeZone: 'UTC',
  },
}

describe('chart', () => {
  it.each(Object.entries(SPECS))('draws %s as it did before', (name, spec) => {
    const golden = fileURLToPath(new URL(`${name}.golden.svg`, import.meta.url))
    const svg = renderChart(spec)
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(golden, svg)
    expect(svg).toBe(readFileSync(golden, 'utf8'))
    expect(renderChart(spec)).toBe(svg)
  })

  it('leaves a gap where nothing was read', () => {
    const path = / d="(M[^"]+)" fill="none" stroke="#0072b2"/.exec(renderChart({ ...SPECS.line, marks: [] } as ChartSpec))?.[1]
    expect(path?.match(/M/g)).toHaveLength(2)
  })

  it('says so when there is nothing to draw', () => {
    const empty = { width: 320, height: 120, title: 'x', unit: 'ratio', series: [{ name: 'a', values: [] }], timeZone: 'UTC' } as const
    expect(renderChart({ ...empty, at: [] })).toContain('no samples')
    expect(renderChart({ ...empty, at: [START], series: [{ name: 'a', values: [null] }] })).toContain('no readings')
  })

  it('escapes text and drops what XML forbids', () => {
    const hostile = '</title><script>alert("1")</script>&\u0000\u001b[31m\u202e\ud800'
    const svg = renderChart({
      ...SPECS.line,
      title: hostile,
      limits: [{ value: 1, label: hostile }],
      marks: [{ at: START, label: hostile }],
      series: [
        { name: hostile, values: used },
        { name: 'b', values: used },
      ],
    } as ChartSpec)
    expect(svg).not.toContain('<script')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
    expect(svg).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]|\p{Surrogate}/u)
  })

  it('holds for any numbers: no NaN, nothing outside the picture, bounded size', () => {
    const reading = fc.oneof(fc.constant(null), fc.double(), fc.integer())
    fc.assert(
      fc.property(
        fc.array(reading, { maxLength: 50 }),
        fc.integer({ min: 320, max: 1200 }),
        fc.constantFrom('bytes' as const, 'ratio' as const, 'celsius' as const, 'count' as const, { suffix: 'x' }),
        (values, width, unit) => {
          const moments = values.map((_, index) => START + index * 1000)
          const svg = renderChart({ width, height: 120, title: 't', unit, at: moments, series: [{ name: 's', values }], timeZone: 'UTC' })
          expect(svg).not.toMatch(/NaN|Infinity|undefined/)
          expect(svg.length).toBeLessThan(40_000)
        },
      ),
    )
  })

  it('thins ten thousand points to what the pixels can show, extremes kept', () => {
    const values = Array.from({ length: 100_000 }, (_, index) => (index === 54_321 ? 1e9 : Math.sin(index)))
    const moments = values.map((_, index) => START + index * 100)
    const svg = renderChart({
      width: 560,
      height: 180,
      title: 't',
      unit: 'count',
      at: moments,
      series: [{ name: 's', values }],
      timeZone: 'UTC',
    })
    expect(svg.length).toBeLessThan(60_000)
    const points = values.map((y, index) => ({ x: index / 200, y }))
    expect(Math.max(...thin(points).map((point) => point.y))).toBe(1e9)
  })

  it('stacks what is known and leaves a gap where all is unknown', () => {
    expect(stack(3, [[1, null, null], [2, 3, null]])).toEqual([[1, 0, null], [3, 3, null]]) // biome-ignore format: columns
  })

  it('has colors that stand out from the background', () => {
    const { background, series, text, limit, mark } = PALETTE
    for (const color of [...series, limit, mark]) expect(contrast(color, background)).toBeGreaterThan(2.2)
    expect(contrast(text, background)).toBeGreaterThan(7)
  })
})

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((start) => Number.parseInt(color.slice(start, start + 2), 16) / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x)
  return (light + 0.05) / (dark + 0.05)
}
