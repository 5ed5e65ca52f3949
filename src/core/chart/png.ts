/** SVG → PNG for mail programs, in a child process: a crash of the rasterizer cannot kill the agent, and fonts do not stay in its memory. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { withStrokedText } from './stroke-font.ts'

const TIME_LIMIT_MS = 20_000
const MOST_BYTES = 8 * 1024 * 1024

/** Without fonts the rasterizer leaves text out, so a probe decides which picture is drawn. */
const PROGRAM = `
import { readFileSync } from 'node:fs'
import { Resvg } from '@resvg/resvg-js'
const { svg, stroked, width, systemFonts } = JSON.parse(readFileSync(0, 'utf8'))
const font = { loadSystemFonts: systemFonts }
const probe = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><text x="4" y="30" font-size="20">8</text></svg>'
const hasFont = systemFonts && new Resvg(probe, { font }).getBBox() !== undefined
const picture = new Resvg(hasFont ? svg : stroked, { font, fitTo: { mode: 'width', value: width } }).render()
process.stdout.write(picture.asPng())
`

export interface PngOptions {
  readonly signal?: AbortSignal
  /** False: always draw letters as strokes; the same bytes on every machine. */
  readonly systemFonts?: boolean
}

/** `width` in pixels; twice the width of the SVG looks sharp on dense screens. */
export function renderPng(svg: string, width: number, { signal, systemFonts = true }: PngOptions = {}): Promise<Buffer> {
  if (!Number.isInteger(width) || width < 1 || width > 4096)
    throw new Error(`renderPng: expected a width of 1 to 4096 whole pixels, got ${width}`)
  const limits = [AbortSignal.timeout(TIME_LIMIT_MS), ...(signal ? [signal] : [])]
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    // --eval looks modules up from the working folder.
    cwd: fileURLToPath(new URL('../../../', import.meta.url)),
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '/' },
    stdio: ['pipe', 'pipe', 'pipe'],
    signal: AbortSignal.any(limits),
    killSignal: 'SIGKILL',
  })
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let complaint = ''
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= MOST_BYTES) chunks.push(chunk)
    })
    child.stderr.on('data', (chunk: Buffer) => {
      if (complaint.length < 2000) complaint += chunk.toString()
    })
    child.on('error', (cause) => reject(new Error(`the chart was not drawn: ${cause.message}`, { cause })))
    child.on('close', (code, killedBy) => {
      const png = Buffer.concat(chunks)
      if (code === 0 && bytes <= MOST_BYTES && png.subarray(1, 4).toString() === 'PNG') resolve(png)
      else
        reject(
          new Error(
            `the chart was not drawn: the rasterizer ended with ${killedBy ?? `status ${code}`} after ${bytes} bytes. ${complaint.slice(0, 300)}`,
          ),
        )
    })
    // A child that ended early closes the pipe; its exit says more than EPIPE.
    child.stdin.on('error', () => undefined)
    child.stdin.end(JSON.stringify({ svg, stroked: withStrokedText(svg), width, systemFonts }))
  })
}
