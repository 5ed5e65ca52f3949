/** Text as it goes into a page. */
import { escapeHtml } from '../core/escape-html.ts'
import { timeText } from '../core/time-span.ts'

export { escapeHtml }

/** Lets a path wrap at its separators. */
export function escapePath(path: string): string {
  return escapeHtml(path).replace(/[\\/]/g, (separator) => `${separator}<wbr>`)
}

/** A moment or a period, in UTC; the script of the page shows it in the reader's time zone. */
export function timeHtml(from: number, to: number | null = null): string {
  return `<time data-from="${from}"${to === null ? '' : ` data-to="${to}"`}>${timeText(from, to, 'utc')}</time>`
}

/** `head` and `rows` are HTML already. */
export function tableHtml(kind: string, head: readonly string[], rows: readonly string[]): string {
  return `<div class="scroll"><table class="${kind}"><tr>${head.map((name) => `<th>${name}</th>`).join('')}</tr>${rows.join('')}</table></div>`
}
