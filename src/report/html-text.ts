/** Text as it goes into a page. */
import { escapeHtml } from '../core/escape-html.ts'

export { escapeHtml }

/** Breaks lines of a path where people do. */
export function escapePath(path: string): string {
  return escapeHtml(path).replace(/[\\/]/g, (separator) => `${separator}<wbr>`)
}

export function utcTime(at: number): string {
  return Number.isFinite(at) ? new Date(at).toISOString().slice(0, 19).replace('T', ' ') : ''
}
