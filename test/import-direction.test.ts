/** Guards the house by its folders: core below, rooms side by side on it, then the agent, the library and the command line. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { circles, edges, importsOf, judge, SRC, sourceFiles } from '../tools/rooms.js'

const WEB = fileURLToPath(new URL('../web/src', import.meta.url))

/** Files of src/ that these files take values from, directly or through others. */
function reached(from: readonly string[]): Set<string> {
  const found = new Set<string>()
  const visit = (path: string) => {
    for (const { to, isType } of importsOf(path)) {
      if (isType || to.startsWith('..') || found.has(to)) continue
      found.add(to)
      visit(join(SRC, to))
    }
  }
  for (const path of from) visit(path)
  return found
}

describe('import direction', () => {
  const all = edges()

  it('has files to judge', () => {
    expect(all.length).toBeGreaterThan(1000)
  })

  it('is kept by every file', () => {
    expect(all.flatMap(({ from, to }) => judge(from, to) ?? [])).toEqual([])
  })

  it('goes round in no circle, not even for types or lazily', () => {
    expect(circles(all).map((files) => files.join(' → '))).toEqual([])
  })

  it('keeps the root of src/ to the two ways in', () => {
    const atRoot = sourceFiles().filter((path) => dirname(path) === SRC)
    expect(atRoot.map((path) => relative(SRC, path))).toEqual(['cli.ts', 'index.ts'])
  })

  it('keeps native code in the sources and therefore in the sampler process', () => {
    const loaders = sourceFiles().filter((path) => /from 'koffi'|import\('koffi'\)(?!")/.test(readFileSync(path, 'utf8')))
    expect(loaders.length).toBeGreaterThan(0)
    expect(loaders.filter((path) => !relative(SRC, path).startsWith('sources/nvidia/'))).toEqual([])
  })

  it('lets the page take of core what needs neither Node.js nor a package, and nothing else', () => {
    const pages = sourceFiles(WEB)
    const taken = reached(pages)
    expect(taken.size).toBeGreaterThan(3)
    expect([...taken].filter((path) => !path.startsWith('core/'))).toEqual([])
    const foreign = [...taken].filter((path) => /^import (?!type)[^;']*?'[^.]/m.test(readFileSync(join(SRC, path), 'utf8')))
    expect(foreign).toEqual([])
    const types = pages.flatMap((path) => importsOf(path).filter(({ to, isType }) => isType && !to.startsWith('..')))
    expect(types.filter(({ to }) => !to.startsWith('core/'))).toEqual([])
  })

  it('would notice a wrong import', () => {
    expect(judge('store/store.ts', 'server/server.ts')).toMatch(/a room imports core/)
    expect(judge('core/model.ts', 'agent/hub.ts')).toMatch(/core lies below agent/)
    expect(judge('store/store.ts', 'agent/hub.ts')).toMatch(/lies below/)
    expect(judge('agent/app.ts', 'library/gpu-monitor.ts')).toMatch(/lies below/)
    expect(judge('index.ts', 'cli.ts')).toMatch(/two ways in/)
    expect(judge('sources/amd/index.ts', 'core/record.ts')).toBe(null)
    expect(judge('commands/top.ts', 'tui/render.ts')).toBe(null)
    const pair = [
      { from: 'a.ts', to: 'b.ts', isType: false },
      { from: 'b.ts', to: 'a.ts', isType: true },
    ]
    expect(circles(pair)).toEqual([['a.ts', 'b.ts']])
  })
})
