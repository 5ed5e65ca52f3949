/** Why memory ran out, as a section of the page. */
import { formatBytes, formatCount, formatShare } from '../core/format.ts'
import {
  type CodePlace,
  causeWords,
  growthText,
  ledgerBySize,
  ledgerLabel,
  ledgerTotal,
  type OomReport,
  ownPlace,
  wayOutText,
} from '../core/memory/oom-report.ts'
import { escapeHtml, escapePath, tableHtml, timeHtml } from './html-text.ts'
import { ledgerClass } from './ledger-color.ts'

/** `raw`: what the SDK sent; `runName`: where the page covers more than that run. */
export function oomSection(report: OomReport, raw: unknown, runName: string | null): string {
  const { cause } = report
  const words = cause === null ? '' : `<p class="cause"><b>${escapeHtml(capital(causeWords(cause.kind)))}</b> ${causeMessage(report)}</p>`
  return `<section class="oom"><h2>Why memory ran out${runName === null ? '' : `: ${escapeHtml(runName)}`}</h2>${words}
${facts(report)}${ledger(report)}${holders(report)}${stack(report)}${details('Everything the SDK recorded', JSON.stringify(raw, null, 2))}</section>`
}

function causeMessage({ cause }: OomReport): string {
  const message = cause?.message ?? null
  return message === null ? '' : `<span>${escapeHtml(`${capital(message)}${/[.!?]$/.test(message) ? '' : '.'}`)}</span>`
}

function facts(report: OomReport): string {
  const { requestedBytes, growth, allocatorSettings, allocatorRetries, peakAllocatedBytes, snapshot, rank, pid, at } = report
  const rows: [string, string][] = []
  const place = ownPlace(report)
  if (place) rows.push(['Where', placeHtml(place)])
  if (requestedBytes !== null) rows.push(['Asked for', escapeHtml(formatBytes(requestedBytes))])
  if (growth) rows.push(['Tensors grew', escapeHtml(growthText(growth))])
  if (peakAllocatedBytes !== null) rows.push(['Tensor peak', escapeHtml(formatBytes(peakAllocatedBytes))])
  rows.push([
    'Allocator settings',
    allocatorSettings === null ? 'none (PYTORCH_ALLOC_CONF)' : `<code>${escapeHtml(allocatorSettings)}</code>`,
  ])
  if (allocatorRetries !== null) rows.push(['Flushed its cache and retried', formatCount(allocatorRetries, 'time')])
  const ways = (snapshot?.waysOut ?? []).map((way) => `<li>${escapeHtml(`${wayOutText(way)} ${way.line ?? ''}`.trim())}</li>`)
  if (ways.length > 0) rows.push(['Ways out', `<ol>${ways.join('')}</ol>`])
  if (snapshot?.path != null) rows.push(['Snapshot', `<code>${escapePath(snapshot.path)}</code>, <code>gpuwarden snapshot</code> shows it`])
  else if (snapshot?.reason != null) rows.push(['Snapshot', escapeHtml(snapshot.reason)])
  const who = [rank === null ? '' : `rank ${rank}`, pid === null ? '' : `process ${pid}`, at === null ? '' : timeHtml(at)]
  if (who.some((part) => part !== '')) rows.push(['Who and when', who.filter((part) => part !== '').join(', ')])
  return `<dl>${rows.map(([name, text]) => `<dt>${name}</dt><dd>${text}</dd>`).join('')}</dl>`
}

function ledger(report: OomReport): string {
  const entries = ledgerBySize(report)
  const total = ledgerTotal(report)
  if (entries.length === 0 || total <= 0) return ''
  const said = entries.map(({ name, bytes }) => `${ledgerLabel(name)} ${formatBytes(bytes)}`)
  const parts = entries
    .filter(({ bytes }) => bytes > 0)
    .map(({ name, bytes }) => {
      const title = escapeHtml(`${ledgerLabel(name)}: ${formatBytes(bytes)}`)
      return `<span class="${ledgerClass(name)}" style="flex-grow:${(bytes / total).toFixed(6)}" title="${title}"></span>`
    })
  const rows = entries.map(
    ({ name, bytes, explanation }) =>
      `<tr><td><i class="swatch ${ledgerClass(name)}"></i>${escapeHtml(ledgerLabel(name))}</td><td>${formatBytes(bytes)}</td><td>${escapeHtml(formatShare(bytes, total))}</td><td class="faint">${escapeHtml(explanation ?? '')}</td></tr>`,
  )
  const sum = `<tr class="sum"><td>Total</td><td>${formatBytes(total)}</td><td>100%</td><td></td></tr>`
  return `<h3>Where it was</h3><div class="bar" role="img" aria-label="${escapeHtml(said.join(', '))}">${parts.join('')}</div>
${tableHtml('parts', ['part', 'size', 'share', 'what it is'], [...rows, sum])}`
}

function holders({ holders: list }: OomReport): string {
  if (list.length === 0) return ''
  const rows = list.map(
    (holder) => `<tr><td>${formatBytes(holder.bytes)}</td><td>${holder.blocks ?? ''}</td><td class="wide">${placeHtml(holder)}</td></tr>`,
  )
  return `<h3>Who held it</h3>${tableHtml('holders', ['size', 'blocks', 'allocated at'], rows)}`
}

function stack({ stack: frames, message }: OomReport): string {
  const lines = [...frames].reverse().map(({ file, line, function: name }) => `${file}:${line ?? '?'}  ${name ?? ''}`)
  const calls = lines.length === 0 ? '' : details('Calls, innermost first', lines.join('\n'))
  return `${calls}${message === null ? '' : details("PyTorch's own message", message)}`
}

function details(title: string, text: string): string {
  return `<details><summary>${escapeHtml(title)}</summary><pre>${escapeHtml(text)}</pre></details>`
}

function placeHtml({ file, line, function: name }: CodePlace): string {
  return `<code>${escapePath(file)}${line === null ? '' : `:${line}`}</code>${name === null ? '' : ` in <code>${escapeHtml(name)}</code>`}`
}

function capital(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}
