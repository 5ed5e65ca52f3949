/** A page as one file that needs no network. Its script and style are built from `web/src/report`. */
import { readFileSync } from 'node:fs'
import { Failure } from '../core/failure.ts'
import type { Reading } from '../core/model.ts'
import type { ReportChart, ReportPageData } from '../core/report-page.ts'
import { escapeHtml, timeHtml } from './html-text.ts'

/** The same from src/report and from dist/report. */
const BUILT = new URL('../../dist/web-report/', import.meta.url)

const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

interface Frame {
  readonly title: string
  /** After the title, as HTML. */
  readonly head: string
  readonly body: string
  /** Footer, as HTML. */
  readonly notes: string
  readonly version: string
  readonly generatedAt: number
}

export interface HtmlPage extends Frame {
  readonly data: ReportPageData
}

export function htmlPage({ data, ...frame }: HtmlPage): string {
  return framedPage(frame, 'report', reportData(data))
}

/** `script`: which of the scripts in `dist/web-report` the page has; `data` is what it draws. */
export function framedPage({ title, head, body, notes, version, generatedAt }: Frame, script: 'report' | 'snapshot', data: object): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${escapeHtml(title)} · gpuwarden</title>
<style>${builtFile(`${script}.css`)}</style>
</head>
<body>
<main>
<header><h1>${escapeHtml(title)}</h1>${head}<button id="theme" type="button" hidden>light / dark</button></header>
${body}
<p class="faint">gpuwarden ${escapeHtml(version)}, ${timeHtml(generatedAt)}. <span id="zone">Times are UTC.</span> ${notes}</p>
</main>
<div id="tip" hidden></div>
<script type="application/json" id="data">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>
<script>${builtFile(`${script}.js`)}</script>
</body>
</html>
`
}

/** Where the script draws charts, by their positions in the data. */
export function chartPlaces(positions: readonly number[]): string {
  return positions.map((position) => `<div data-chart="${position}"></div>`).join('')
}

export const NO_SCRIPT = '<noscript>The charts need JavaScript; the tables do not.</noscript>'

function builtFile(name: string): string {
  try {
    return readFileSync(new URL(name, BUILT), 'utf8').trim()
  } catch (cause) {
    throw new Failure(`this installation is incomplete: ${(cause as Error).message}`, {
      hint: 'Install gpuwarden again; in a checkout run: npm run build',
      cause,
    })
  }
}

function reportData(data: ReportPageData): ReportPageData {
  const to = data.to > data.from ? data.to : data.from + 1000
  return { ...data, to, charts: data.charts.map(rounded) }
}

function rounded(chart: ReportChart): ReportChart {
  const digits = chart.unit === 'ratio' ? 3 : 5
  const round = (values: readonly Reading[]) => values.map((value) => (value === null ? null : Number(value.toPrecision(digits))))
  return {
    ...chart,
    series: chart.series.map((series) => ({
      ...series,
      values: round(series.values),
      ...(series.min && series.max ? { min: round(series.min), max: round(series.max) } : {}),
    })),
  }
}
