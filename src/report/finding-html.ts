/** The findings as a table of the page. */
import type { Reading } from '../core/model.ts'
import type { ReportMark } from '../core/report-page.ts'
import { escapeHtml, tableHtml, timeHtml } from './html-text.ts'

export interface FindingRow extends ReportMark {
  readonly until: Reading
  readonly advice: readonly string[]
  readonly confidence?: number
}

export function findingMarks(findings: readonly FindingRow[]): ReportMark[] {
  return findings.map(({ at, severity, detector, message, gpuIndex }) => ({ at, severity, detector, message, gpuIndex }))
}

export const MOST_ROWS = 200

export function findingTable(findings: readonly FindingRow[]): string {
  if (findings.length === 0) return '<h2>Findings</h2><p>None.</p>'
  const rows = findings.slice(0, MOST_ROWS).map((finding) => {
    const items = finding.advice.map((one) => `<li>${escapeHtml(one)}</li>`).join('')
    const advice = items === '' ? '' : `<ul class="faint">${items}</ul>`
    const gpu = finding.gpuIndex === null ? '' : `GPU ${finding.gpuIndex}`
    const confidence = finding.confidence === undefined ? '' : ` <span class="faint">(confidence ${finding.confidence.toFixed(2)})</span>`
    return `<tr data-at="${finding.at}"><td>${timeHtml(finding.at, finding.until)}</td><td class="tone-${finding.severity}">${finding.severity}</td><td>${escapeHtml(finding.detector)}</td><td>${gpu}</td><td>${escapeHtml(finding.message)}${confidence}${advice}</td></tr>`
  })
  const more = findings.length > MOST_ROWS ? `<p class="faint">… and ${findings.length - MOST_ROWS} more.</p>` : ''
  return `<h2>Findings</h2>${tableHtml('findings', ['when', 'severity', 'detector', 'GPU', 'what'], rows)}${more}`
}
