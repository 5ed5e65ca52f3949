import { mkdirSync, mkdtempSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { recoverSteps } from './recovery.ts'
import { Registry } from './registry.ts'
import { runOf } from './routes.ts'
import { RunFiles } from './run-files.ts'
import { newRun } from './run-record.ts'

const RECEIVED_AT = Date.UTC(2026, 10, 16, 1, 18, 42, 990)
const STEP_AT = RECEIVED_AT - 100

/** A batch of the steps 1 and 2 in the journal of a process that is gone; step 1 is in the log, whose file has this age. */
async function recovered(writtenAt: number) {
  const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-recovery-'))
  mkdirSync(join(dir, 'runs'))
  const registry = new Registry(new RunFiles(join(dir, 'runs')), 10)
  await registry.keep(newRun(runOf({ id: 'r', name: 'x' }), STEP_AT, null))
  const body = [1, 2].map((step) => JSON.stringify({ seq: step, step, t: STEP_AT, loss: 1 })).join('\n')
  const head = JSON.stringify({ run: 'r', at: RECEIVED_AT, bytes: Buffer.byteLength(body) })
  writeFileSync(join(dir, 'runs', 'journal-999999999-1-1.ndjson'), `${head}\n${body}\n`)
  const log = join(dir, 'training_metrics_20261116_011832.jsonl')
  writeFileSync(log, `${JSON.stringify({ timestamp: new Date(STEP_AT).toISOString(), run: 'r', rank: 0, step: 1, loss: 1 })}\n`)
  utimesSync(log, writtenAt / 1000, writtenAt / 1000)
  return recoverSteps(dir, registry)
}

it.each([
  ['after the batch came', 20],
  ['by a clock of the file system that lags', -3],
])('publishes only what the log lacks, where it was written %s', async (_when, lateMs) => {
  const left = await recovered(RECEIVED_AT + lateMs)
  expect(left?.steps).toBe(2)
  expect(left?.missing.map(({ step }) => step)).toEqual([2])
})
