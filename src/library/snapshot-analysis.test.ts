import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Failure } from '../core/failure.ts'
import { LeakDetector } from './leak-detector.ts'
import { MemoryDebugger } from './memory-debugger.ts'
import { analyzeSnapshot } from './snapshot-analysis.ts'

const file = (name: string) => fileURLToPath(new URL(`../../fixtures/snapshots/${name}`, import.meta.url))

describe('the analysis of a snapshot in the library', () => {
  it('names the line that leaks, and none of a healthy program', async () => {
    const detector = new LeakDetector()
    const [leaking] = (await detector.analyzeSnapshot(file('leak.pickle.gz'))).devices
    expect(leaking?.leak.answer).toBe('leak')
    expect(leaking?.leak.candidates[0]?.line).toMatch(/\.py:\d+/)
    expect(leaking?.peak.allocatedBytes).toBe(4_508_512_268)
    const [healthy] = (await detector.analyzeSnapshot(file('healthy.pickle.gz'))).devices
    expect(healthy?.leak.candidates).toEqual([])
  })

  it('says how an out-of-memory could have been avoided', async () => {
    const { devices, cut } = await analyzeSnapshot(file('fragment_oom.pickle.gz'))
    expect(cut).toBeNull()
    expect(devices[0]?.outOfMemory?.waysOut.length).toBeGreaterThan(0)
    expect(devices[0]?.fragmentation?.request.bytes).toBe(178_257_920)
  })

  it('is part of the report of the memory debugger, on disk too', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'gpuwarden-snapshot-')), 'report.json')
    const memory = new MemoryDebugger({ snapshot: file('healthy.pickle.gz') })
    expect(memory.getStatusReport().snapshot).toBeNull()
    const report = await memory.generateReport(path)
    expect(report.snapshot?.devices[0]?.peak.allocatedBytes).toBe(733_638_668)
    expect(JSON.parse(readFileSync(path, 'utf8')).snapshot.devices).toHaveLength(1)
  })

  it('refuses what is no snapshot, and GPUs that are not in it', async () => {
    await expect(analyzeSnapshot(file('nothing.pickle'))).rejects.toThrow(Failure)
    await expect(analyzeSnapshot(file('healthy.pickle.gz'), { devices: [7] })).rejects.toThrow(/nothing of the GPUs/)
  })
})
