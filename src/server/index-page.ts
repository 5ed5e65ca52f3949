/** The page at `/` when there is no web UI: a list of the routes. */
import type { Route } from '../core/route.ts'

export function indexPage(routes: readonly Route[], version: string): string {
  const rows = routes.map(({ method, path, summary }) => {
    const name = escapeHtml(`${method} ${path}`)
    const link = method === 'GET' && !path.includes(':') ? `<a href="${escapeHtml(path)}">${name}</a>` : name
    return `<li>${link}: ${escapeHtml(summary)}</li>`
  })
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8"><title>gpuwarden</title></head><body>',
    `<h1>gpuwarden ${escapeHtml(version)}</h1>`,
    `<ul>\n${rows.join('\n')}\n</ul>`,
    '</body></html>',
    '',
  ].join('\n')
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
