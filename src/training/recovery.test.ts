import { mkdirSync, mkdtempSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { logLane } from '../core/disk-lane.ts'
import type { Log } from '../core/kinds.ts'
import { recoverSteps } from './recovery.ts'
import { Registry } from './registry.ts'
import { runOf } from './routes.ts'
import { RunFiles } from './run-files.ts'
import { newRun } from './run-record.ts'
import { createTraining } from './training.ts'

const RECEIVED_AT = Date.UTC(2026, 10, 16, 1, 18, 42, 990)
const STEP_AT = RECEIVED_AT - 100

const ignore = () => undefined
const SILENT: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => SILENT }

/** A batch of the steps 1 and 2 in the journal of a process that is gone; step 1 is in the log, and both files were written then. */
async function leftBehind(writtenAt: number) {
  const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-recovery-'))
  mkdirSync(join(dir, 'runs'))
  const registry = new Registry(new RunFiles(join(dir, 'runs')), 10)
  await registry.keep(newRun(runOf({ id: 'r', name: 'x' }), STEP_AT, null))
  const body = [1, 2].map((step) => JSON.stringify({ seq: step, step, t: STEP_AT, loss: 1 })).join('\n')
  const head = JSON.stringify({ run: 'r', at: RECEIVED_AT, bytes: Buffer.byteLength(body) })
  const journal = join(dir, 'runs', 'journal-999999999-1-1.ndjson')
  writeFileSync(journal, `${head}\n${body}\n`)
  const log = join(dir, 'training_metrics_20261116_011832.jsonl')
  writeFileSync(log, `${JSON.stringify({ timestamp: new Date(STEP_AT).toISOString(), run: 'r', rank: 0, step: 1, loss: 1 })}\n`)
  for (const path of [journal, log]) utimesSync(path, writtenAt / 1000, writtenAt / 1000)
  return { dir, registry }
}

it.each([
  ['after the batch came', 20],
  ['by a clock of the file system that lags', -3],
  ['by a server whose clock is an hour behind', -3_600_000],
])('publishes only what the log lacks, where it was written %s', async (_when, lateMs) => {
  const { dir, registry } = await leftBehind(RECEIVED_AT + lateMs)
  const left = await recoverSteps(dir, registry)
  expect(left?.steps).toBe(2)
  expect(left?.missing.map(({ step }) => step)).toEqual([2])
})

it('leaves the journal where it is when the room was closed before a slow disk gave it: the log takes nothing any more', async () => {
  const { dir } = await leftBehind(RECEIVED_AT)
  const published: unknown[] = []
  const open = () => {
    const hub = { receiveRun: ignore, receiveSteps: (steps: readonly unknown[]) => void published.push(...steps) }
    return createTraining({ hub, dir, log: SILENT, flush: async () => true })
  }
  let answer: () => void = ignore
  const slow = logLane.run(dir, () => new Promise<void>((resolve) => (answer = resolve)))
  const first = open()
  const opening = first.open()
  await first.close()
  answer()
  await slow
  await opening
  await expect.poll(() => published).toHaveLength(1)
  // It ends in the background.
  await logLane.run(dir, () => new Promise((resolve) => setTimeout(resolve, 200)))
  await first.checkpoint()
  expect(readdirSync(join(dir, 'runs')).filter((name) => name.startsWith('journal'))).toEqual(['journal-999999999-1-1.ndjson'])
  const second = open()
  await second.open()
  expect(published).toHaveLength(2)
  await second.close()
  expect(readdirSync(join(dir, 'runs')).filter((name) => name.startsWith('journal'))).toEqual([])
})
