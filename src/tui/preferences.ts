/** What the terminal UI remembers, in a small file. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { tryReadText } from '../core/system-file.ts'
import { type GpuLayout, PANELS, type Panel, SORTS, type Sort, type View } from './screen-data.ts'
import { THEME_NAMES, type ThemeName } from './theme.ts'

export interface Preferences {
  readonly hidden: readonly Panel[]
  readonly layout: GpuLayout
  readonly sort: Sort
  readonly descending: boolean
  readonly tree: boolean
  readonly theme: ThemeName | null
}

const NONE: Preferences = { hidden: [], layout: 'auto', sort: 'gpu', descending: false, tree: false, theme: null }
const LAYOUTS: readonly GpuLayout[] = ['auto', 'cards', 'rows']

export function preferencesPath(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'gpuwarden', 'top.json')
}

/** Missing or invalid values get their defaults: a broken file must not keep the terminal UI from opening. */
export function parsePreferences(text: string): Preferences {
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    return NONE
  }
  if (raw === null || typeof raw !== 'object') return NONE
  const given = raw as Record<string, unknown>
  return {
    hidden: Array.isArray(given.hidden) ? PANELS.filter((panel) => (given.hidden as unknown[]).includes(panel)) : [],
    layout: LAYOUTS.find((layout) => layout === given.layout) ?? 'auto',
    sort: SORTS.find((sort) => sort === given.sort) ?? 'gpu',
    descending: given.descending === true,
    tree: given.tree === true,
    theme: THEME_NAMES.find((theme) => theme === given.theme) ?? null,
  }
}

export function readPreferences(path: string): Preferences {
  // Missing or not readable: the defaults.
  const text = tryReadText(path)
  return text === null ? NONE : parsePreferences(text)
}

/** Gives why it could not be written; null when it was. */
export function writePreferences(path: string, preferences: Preferences): string | null {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const part = `${path}.${process.pid}.part`
    writeFileSync(part, `${JSON.stringify(preferences, null, 2)}\n`, { mode: 0o600 })
    renameSync(part, path)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

export function viewWith(view: View, { hidden, layout, sort, descending, tree }: Preferences): View {
  return { ...view, hidden: new Set(hidden), layout, sort, descending, tree }
}

export function preferencesOf(view: View, theme: ThemeName | null): Preferences {
  const { layout, sort, descending, tree } = view
  return { hidden: PANELS.filter((panel) => view.hidden.has(panel)), layout, sort, descending, tree, theme }
}
