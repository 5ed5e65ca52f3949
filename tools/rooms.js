// The rooms of src/ and who imports whom, read from the files themselves. test/import-direction.test.ts judges it; tools/docs.js draws it.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const SRC = fileURLToPath(new URL('../src', import.meta.url))

/** From the bottom up. Every other folder of src/ is a room; rooms stand side by side between `core` and `agent`. */
export const LAYERS = ['core', 'rooms', 'agent', 'library', 'commands', 'entries']

/** The folder of a path below src/; a file at the root is an entry. */
export function roomOf(path) {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : 'entries'
}

export function layerOf(room) {
  const layer = LAYERS.indexOf(room)
  return layer < 0 ? LAYERS.indexOf('rooms') : layer
}

/** Files of the program, without tests and what tests share. */
export function sourceFiles(folder = SRC, pattern = /\.tsx?$/) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name) && !/\.(test|contract|fixture)\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

/** What a file imports of src/, lazily or for types only, too. `to` is relative to src/. */
export function importsOf(path) {
  const text = readFileSync(path, 'utf8')
  const found = text.matchAll(/(?:^(?:import|export)\s+(type\s)?[^;']*?from\s+|^import\s+|\bimport\(\s*)'(\.[^']+)'/gms)
  return [...found].map(([, isType, to]) => ({ to: relative(SRC, join(dirname(path), to)), isType: isType !== undefined }))
}

/** Every import inside src/. */
export function edges() {
  return sourceFiles().flatMap((path) => importsOf(path).map(({ to, isType }) => ({ from: relative(SRC, path), to, isType })))
}

/** Room → the rooms that it imports, both sorted. */
export function roomGraph(all = edges()) {
  const graph = new Map()
  for (const { from, to } of all) {
    const [a, b] = [roomOf(from), roomOf(to)]
    if (!graph.has(a)) graph.set(a, new Set())
    if (a !== b) graph.get(a).add(b)
  }
  return new Map([...graph].sort(([a], [b]) => a.localeCompare(b)).map(([room, to]) => [room, [...to].sort()]))
}

/** What is wrong with this import, or null. */
export function judge(from, to) {
  const [a, b] = [roomOf(from), roomOf(to)]
  if (a === b && a !== 'entries') return null
  if (a === 'entries' && b === 'entries') return `${from} must not import ${to}: the command line and the library are two ways in`
  if (layerOf(a) > layerOf(b)) return null
  if (layerOf(a) < layerOf(b)) return `${from} must not import ${to}: ${a} lies below ${b}`
  return `${from} must not import ${to}: a room imports core and its own files`
}

/** Files that import each other in a circle: each circle as the list of its files. */
export function circles(all = edges()) {
  const next = new Map()
  for (const { from, to } of all) next.set(from, [...(next.get(from) ?? []), to])
  const state = new Map()
  const found = []
  const visit = (file, path) => {
    if (state.get(file) === 'done') return
    const at = path.indexOf(file)
    if (at >= 0) {
      found.push(path.slice(at))
      return
    }
    for (const to of next.get(file) ?? []) visit(to, [...path, file])
    state.set(file, 'done')
  }
  for (const file of next.keys()) visit(file, [])
  return found
}
