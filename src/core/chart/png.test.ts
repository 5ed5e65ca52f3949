import { describe, expect, it } from 'vitest'
import { renderChart } from './chart.ts'
import { renderPng } from './png.ts'
import { withStrokedText } from './stroke-font.ts'

const chart = (title: string) =>
  renderChart({
    width: 320,
    height: 120,
    title,
    unit: 'ratio',
    at: [0, 60_000],
    series: [{ name: 'a', values: [0.2, 0.9] }],
    timeZone: 'UTC',
  })

const sizeOf = (png: Buffer) => ({ width: png.readUInt32BE(16), height: png.readUInt32BE(20) })

describe('renderPng', () => {
  it('draws at the width asked for', async () => {
    const png = await renderPng(chart('Utilisation'), 640)
    expect(sizeOf(png)).toEqual({ width: 640, height: 240 })
  })

  it('shows text without any font', async () => {
    const [one, other] = await Promise.all([
      renderPng(chart('GPU 0'), 320, { systemFonts: false }),
      renderPng(chart('GPU 1'), 320, { systemFonts: false }),
    ])
    expect(one.equals(other)).toBe(false)
  })

  it('rejects what is not SVG, and says so', async () => {
    await expect(renderPng('no picture', 320)).rejects.toThrow(/chart was not drawn/)
    expect(() => renderPng(chart('x'), 0)).toThrow(/expected a width/)
  })

  it('stops when asked to', async () => {
    const stop = new AbortController()
    const drawing = renderPng(chart('x'), 320, { signal: stop.signal })
    stop.abort()
    await expect(drawing).rejects.toThrow(/not drawn/)
  })
})

describe('withStrokedText', () => {
  it('leaves no text element, and keeps the rest', () => {
    const svg = chart('80 °C & <rising> "x" 你')
    const stroked = withStrokedText(svg)
    expect(stroked).not.toContain('<text')
    expect(stroked.match(/<line/g)).toEqual(svg.match(/<line/g))
    expect(stroked).not.toMatch(/NaN|undefined/)
  })
})
