import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { applyBatch } from './batch.ts'
import { Registry } from './registry.ts'
import { runOf } from './routes.ts'
import { RunFiles } from './run-files.ts'
import { newRun } from './run-record.ts'

const T = 1.76e12
const step = Buffer.from(JSON.stringify({ seq: 1, step: 7, t: T, loss: 'NaN' }))

async function registryWith(count: number): Promise<Registry> {
  const registry = new Registry(new RunFiles(mkdtempSync(join(tmpdir(), 'gpuwarden-registry-'))), 1000)
  for (let index = 0; index < count; index++)
    await registry.keep({ ...newRun(runOf({ id: `r${index}`, name: 'x' }), T, null), endedAt: T, outcome: 'success' })
  await registry.saveProgress(registry.takeDirty())
  return registry
}

describe('the registry', () => {
  it('never has a progress on disk that is ahead of what a list shows of it', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-registry-'))
    const files = new RunFiles(dir)
    // In place of a kill between the two files: the other one cannot be written.
    mkdirSync(join(dir, 'r.progress.json'))
    await expect(files.saveProgress({ id: 'r', progress: '{"steps":2}', figures: '{"steps":2}', layers: null })).rejects.toThrow()
    expect(await files.figuresOf('r')).toEqual({ steps: 2 })
  })

  it('counts what changed a progress that was put away in the meantime', async () => {
    const registry = await registryWith(40)
    const progress = await registry.progressOf('r0')
    if (!progress) throw new Error('r0 is not known')
    for (let index = 1; index < 40; index++) await registry.progressOf(`r${index}`)
    expect(await registry.progressOf('r0')).not.toBe(progress)
    applyBatch(progress, 'r0', step, T)
    registry.touch('r0', progress, T)
    expect(registry.takeDirty().map(({ id }) => id)).toEqual(['r0'])
    expect((await registry.progressOf('r0'))?.figures().lastStep).toBe(7)
  })

  it('puts nothing away that is being written: if the disk does not take it, it is written again', async () => {
    const registry = await registryWith(60)
    for (let index = 0; index < 30; index++) {
      const progress = await registry.progressOf(`r${index}`)
      if (!progress) throw new Error(`r${index} is not known`)
      applyBatch(progress, `r${index}`, step, T)
      registry.touch(`r${index}`, progress, T)
    }
    const taken = registry.takeDirty().map(({ id }) => id)
    expect(taken).toHaveLength(30)
    for (let index = 30; index < 60; index++) await registry.progressOf(`r${index}`)
    registry.markDirty(taken)
    expect(registry.takeDirty().map(({ id }) => id)).toEqual(taken)
    expect((await registry.progressOf('r0'))?.figures().lastStep).toBe(7)
  })

  it('keeps the figures of what is on disk only, for lists, also over a start', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-registry-'))
    const first = new Registry(new RunFiles(dir), 1000)
    await first.keep(newRun(runOf({ id: 'r', name: 'x', total_steps: 10 }), T, null))
    const progress = await first.progressOf('r')
    if (!progress) throw new Error('r is not known')
    applyBatch(progress, 'r', step, T + 5)
    first.touch('r', progress, T + 5)
    await first.saveProgress(first.takeDirty())
    const second = new Registry(new RunFiles(dir), 1000)
    expect(await second.load()).toEqual([])
    expect(second.overview()).toEqual(first.overview().map((listed) => ({ ...listed, heardAt: T })))
    expect(second.overview()[0]?.figures).toMatchObject({ steps: 1, lastStep: 7, loss: Number.NaN, ranks: 1 })
  })
})
