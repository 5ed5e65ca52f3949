/** Every environment variable that the unit, the deployments and the documents name is one that something reads. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { KEYS, OTHER_VARIABLES, SETTINGS, variableOf } from '../src/agent/config.ts'
import type { Setting } from '../src/core/setting.ts'
import { unitText } from '../src/service/unit.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const KNOWN: ReadonlySet<string> = new Set(KEYS.flatMap((key) => [variableOf(key), (SETTINGS[key] as Setting).env ?? []].flat()))
/** Ours by their prefix, and the families of names that the settings take over from mail tools. */
const NAMED = /\b(?:GPUWARDEN|SMTP|EMAIL|MAIL)_[A-Z][A-Z0-9_]*\b/g

function unreadIn(text: string): string[] {
  return [...new Set(text.match(NAMED) ?? [])].filter((name) => !KNOWN.has(name) && !OTHER_VARIABLES.test(name))
}

function filesUnder(path: string): string[] {
  if (statSync(path).isFile()) return [path]
  return readdirSync(path).flatMap((name) => filesUnder(join(path, name)))
}

describe('names of variables', () => {
  it.each(['system', 'user'] as const)('in the unit of the %s are read, and are secrets where it says so', (scope) => {
    const text = unitText({ scope, command: ['/n', '/p'], runAs: null, config: null, drivers: [] })
    expect(unreadIn(text)).toEqual([])
    const secrets = KEYS.filter((key) => (SETTINGS[key] as Setting).secret).flatMap((key) => [
      variableOf(key),
      (SETTINGS[key] as Setting).env,
    ])
    const named = /^# Secrets \((.*)\) belong here/m.exec(text)?.[1]?.match(NAMED) ?? []
    expect(named.length).toBeGreaterThan(0)
    for (const name of named) expect(secrets).toContain(name)
  })

  it.each(['README.md', 'SECURITY.md', 'docs', 'deploy', 'examples', 'prometheus', 'grafana'])('in %s are read', (place) => {
    const unread = filesUnder(join(ROOT, place))
      .filter((file) => /\.(md|ya?ml|service|env|conf|sh|txt)$|Dockerfile/.test(file))
      .flatMap((file) => unreadIn(readFileSync(file, 'utf8')).map((name) => `${name} in ${file.slice(ROOT.length)}`))
    expect(unread).toEqual([])
  })
})
