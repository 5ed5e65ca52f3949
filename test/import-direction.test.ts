/** Guards the house: a room knows the ground floor and itself; only the composition files know the rooms. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

/** Plain data, contracts and small pure tools: anybody may import these. They import nothing but each other. */
const GROUND_FLOOR = new Set([
  'model.ts',
  'kinds.ts',
  'record.ts',
  'setting.ts',
  'failure.ts',
  'format.ts',
  'version.ts',
  'route.ts',
  'route-errors.ts',
  'agent-file.ts',
  'make-folder.ts',
  'disk-lane.ts',
  'disk.ts',
  'kept-file.ts',
  'bounded-body.ts',
  'curve-fields.ts',
  'finding-schema.ts',
  'alert-schema.ts',
])
const isGroundFloor = (path: string) => GROUND_FLOOR.has(path) || /^(recording|chart)\//.test(path)

/** Rooms that may look into another one, and why. */
const DOORS: Readonly<Record<string, readonly string[]>> = {
  /** Detectors are the judgement, memory/ is its maths. */
  detectors: ['memory'],
  /** Reports say in words what memory/ works out. */
  report: ['memory'],
  /** Doctor examines sources by opening them, as a command does. */
  doctor: ['sources'],
}

/** Files that put rooms together. The child process has a composition file of its own. */
const COMPOSITION =
  /^(app|alerting|dashboard|doctor-child|watching|cli|config|config-view|sampling|one-look|gpu-monitor|memory-(watch|tool|profiler|debugger)|oom-detector|leak-detector|fragmentation-analyzer|index|hub|state|log|log-settings)\.ts$|^commands\/|^doctor\/|^sampler\/child\.ts$/

function files(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? files(path) : /\.ts$/.test(name) && !/\.(test|contract|fixture)\.ts$/.test(name) ? [path] : []
  })
}

function imports(path: string): string[] {
  const text = readFileSync(path, 'utf8')
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) => relative(SRC, join(dirname(path), match[1] ?? '')))
}

const WEB_TYPES = new Set(['model.ts', 'kinds.ts', 'memory/ledger.ts', 'memory/oom-report.ts'])
const WEB_VALUES = new Set(['format.ts', 'memory/ledger.ts', 'memory/oom-report.ts', 'curve-fields.ts'])

function webFiles(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? webFiles(path) : /\.tsx?$/.test(name) ? [path] : []
  })
}

/** What a file of the dashboard takes from src/, relative to it. */
function importLines(path: string): { readonly from: string; readonly to: string; readonly isType: boolean }[] {
  const lines = readFileSync(path, 'utf8').matchAll(/^(?:import|export)\s+(type\s)?[^;']*?from\s+'(\.[^']+)'/gms)
  return [...lines].map((match) => ({ from: path, to: relative(SRC, join(dirname(path), match[2] ?? '')), isType: match[1] !== undefined }))
}

/** What is wrong with this import, or null. Pure, so that the rule itself can be tested. */
function judge(from: string, to: string): string | null {
  const [fromRoom, toRoom] = [from, to].map((path) => (path.includes('/') ? (path.split('/')[0] ?? '') : ''))
  if (isGroundFloor(to)) return null
  if (isGroundFloor(from)) return `${from} is on the ground floor and must not import ${to}`
  if (COMPOSITION.test(from)) return null
  if (fromRoom !== '' && fromRoom === toRoom) return null
  if (toRoom !== '' && DOORS[fromRoom ?? '']?.includes(toRoom ?? '')) return null
  return `${from} must not import ${to}: a room imports the ground floor and its own files`
}

describe('import direction', () => {
  const all = files(SRC)

  it('has files to judge', () => {
    expect(all.length).toBeGreaterThan(20)
  })

  it('is kept by every file', () => {
    const wrong = all.flatMap((path) => imports(path).flatMap((to) => judge(relative(SRC, path), to) ?? []))
    expect(wrong).toEqual([])
  })

  it('keeps native code in the sources and therefore in the sampler process', () => {
    const loaders = all.filter(
      (path) => /from 'koffi'|import\('koffi'\)/.test(readFileSync(path, 'utf8')) && !relative(SRC, path).startsWith('doctor/'),
    )
    expect(loaders.map((path) => relative(SRC, path)).every((path) => path.startsWith('sources/nvidia/'))).toBe(true)
  })

  it('lets the dashboard share types, the way figures are written, the ledger and the names of curves, and nothing else', () => {
    const web = fileURLToPath(new URL('../web/src', import.meta.url))
    const taken = webFiles(web).flatMap((path) => importLines(path).filter(({ to }) => to.startsWith('..') === false))
    expect(taken.length).toBeGreaterThan(10)
    const wrong = taken.filter(({ to, isType }) => !(isType ? WEB_TYPES.has(to) : WEB_VALUES.has(to)))
    expect(wrong).toEqual([])
  })

  it('would notice a wrong import', () => {
    expect(judge('store/store.ts', 'server/server.ts')).toMatch(/must not import/)
    expect(judge('model.ts', 'hub.ts')).toMatch(/ground floor/)
    expect(judge('store/store.ts', 'hub.ts')).toMatch(/must not import/)
    expect(judge('detectors/leak.ts', 'memory/leak.ts')).toBe(null)
    expect(judge('sources/amd/index.ts', 'record.ts')).toBe(null)
  })
})
