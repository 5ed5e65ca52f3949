/** Text from outside (process names, run names, host names) made harmless for each place it goes to. */
import { escapeHtml } from '../core/escape-html.ts'

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNWANTED = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]+/g

/** One line: no line ends, escape codes or direction marks, so that nothing can pose as another header, field or line. */
export function oneLine(text: string, most = 500): string {
  return cut(
    text
      .replace(UNWANTED, ' ')
      .replace(/\p{Surrogate}/gu, '\ufffd')
      .replace(/ {2,}/g, ' ')
      .trim(),
    most,
  )
}

/** At most this many characters, with an ellipsis where something is missing. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text
  const characters = [...text.slice(0, most)]
  while (characters.join('').length > most - 1) characters.pop()
  return `${characters.join('').trimEnd()}…`
}

/** The same for servers that count bytes. */
export function cutBytes(text: string, mostBytes: number): string {
  let short = text
  while (Buffer.byteLength(short) > mostBytes) short = cut(short, Math.floor(short.length * 0.9))
  return short
}

/** Discord's Markdown: every sign that could begin something gets a backslash; a mention is broken up. */
export function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_~|>#[\]()<!]/g, (sign) => `\\${sign}`).replace(/@/g, '@\u200b')
}

/** Slack has three special characters; plain_text needs no more. */
export function escapeSlack(text: string): string {
  return text.replace(/[&<>]/g, escapeHtml)
}

/** Only a link that a browser may follow, without characters that are markup somewhere. */
export function safeLink(link: string | null): string | null {
  if (link === null || !URL.canParse(link)) return null
  const url = new URL(link)
  if ((url.protocol !== 'http:' && url.protocol !== 'https:') || url.username !== '' || url.password !== '') return null
  const rest = (url.pathname + url.search + url.hash).replace(/[|()[\]*`~'"<>{}\\^@]/g, percentEncoded)
  return `${url.origin}${rest}`
}

function percentEncoded(sign: string): string {
  return `%${sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

/** A copy in which every text and every name is one harmless line. */
export function harmless<T>(value: T): T {
  if (typeof value === 'string') return oneLine(value, 2000) as T
  if (Array.isArray(value)) return value.map(harmless) as T
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [oneLine(key, 200), harmless(item)])) as T
}
