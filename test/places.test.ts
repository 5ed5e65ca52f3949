/** Guards what "Adding things" in docs/architecture.md promises: a vendor and a channel are named in their own place and in one list. */
import { existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { CHANNEL_KINDS } from '../src/channels/index.ts'
import { VENDORS } from '../src/sources/vendors.ts'
import { sourceFiles } from '../tools/rooms.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FILES = ['src', 'web/src'].flatMap((folder) => sourceFiles(join(ROOT, folder))).map((path) => relative(ROOT, path))

function codeOf(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
}

/** Where one of these names stands as a text of its own, or as a choice in a pattern: `'nvidia'`, `(nvidia|amd)`. */
function named(names: readonly string[], code: string): boolean {
  const either = names.join('|')
  return new RegExp(`(['"\`])(?:${either})\\1|[(|](?:${either})[|)]`, 'i').test(codeOf(code))
}

const placesOf = (names: readonly string[]) => FILES.filter((path) => named(names, readFileSync(join(ROOT, path), 'utf8')))

describe('a vendor', () => {
  it.each(VENDORS.map(({ name, title }) => [name, title] as const))(
    '%s is named in its folder and the list of vendors alone',
    (name, title) => {
      const places = placesOf([name, title])
      expect(places).toContain(`src/sources/${name}/vendor.ts`)
      const isOwn = (path: string) => path.startsWith(`src/sources/${name}/`) || path === 'src/sources/vendors.ts'
      // Simulated cards are somebody's, too.
      expect(places.filter((path) => !isOwn(path) && !path.startsWith('src/sources/demo/'))).toEqual([])
    },
  )
})

describe('a channel', () => {
  /** A word that other things are called as well. */
  const ordinary = ['command']
  /** The page is the subscriber of web push. */
  const subscriber = 'web/src/pages/alerts/channels.tsx'

  it.each(CHANNEL_KINDS.map(({ name }) => name).filter((name) => !ordinary.includes(name)))(
    '%s is named in its file and the list alone',
    (name) => {
      const places = placesOf([name]).filter((path) => path !== 'src/channels/index.ts' && path !== subscriber)
      expect(places).toEqual([`src/channels/${name}.ts`])
    },
  )

  it('is described in docs/channels.md', () => {
    const text = readFileSync(join(ROOT, 'docs/channels.md'), 'utf8')
    expect(CHANNEL_KINDS.map(({ name }) => name).filter((name) => !new RegExp(`type: ${name}\\b|\`${name}\``).test(text))).toEqual([])
  })
})

describe('the search', () => {
  it('finds a name in code and not in a comment or a longer word', () => {
    expect(named(['amd'], "if (vendor === 'amd') {")).toBe(true)
    expect(named(['amd'], 'const FORM = /^(nvidia|AMD)$/')).toBe(true)
    expect(named(['amd'], "/** such as 'amd' */\n// 'amd'\nconst a = 'amdgpu'")).toBe(false)
  })
})

describe('docs/architecture.md', () => {
  it('names only files that there are', () => {
    const [, section = ''] = /## Adding things\n([\s\S]*)/.exec(readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')) ?? []
    const paths = [...section.matchAll(/`((?:src|web|docs|test|python)\/[\w./-]+)`/g)].flatMap(([, path]) => path ?? [])
    expect(paths.length).toBeGreaterThan(10)
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })
})
