/** A kill in the very moment of a decision: the decision is there after the restart. */
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { settingsWith, temporaryDir } from '../src/alerts/pretend-world.contract.ts'

const CHILD = fileURLToPath(new URL('./alert-decision-child.mjs', import.meta.url))
const SETTINGS = JSON.stringify(settingsWith({ 'alerts.keep_firing_seconds': 0 }))
const run = (dir: string, what: 'die' | 'list') => promisify(execFile)(process.execPath, [CHILD, dir, SETTINGS, what])
const notes = () => readdirSync('/dev/shm').filter((name) => name.startsWith('gpuwarden-alerts-'))

it('keeps what was decided in the moment of a kill, over several of them', async () => {
  const dir = await temporaryDir()
  for (let kill = 0; kill < 3; kill++) await expect(run(dir, 'die')).rejects.toMatchObject({ signal: 'SIGKILL' })
  const before = notes()
  const { stdout } = await run(dir, 'list')
  const listed = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as string[]
  expect(listed).toContain('once firing')
  expect(listed).toContain('before firing')
  // Ended at each kill, and reported anew by each run.
  expect(stdout).not.toContain('cannot be kept')
  // An orderly end leaves nothing behind.
  expect(notes().length).toBe(before.length - 1)
})

it('knows the end that was decided in the moment of a kill', async () => {
  const dir = await temporaryDir()
  await expect(run(dir, 'die')).rejects.toMatchObject({ signal: 'SIGKILL' })
  const { Journal } = await import('../src/alerts/journal.ts')
  const { recordedLog } = await import('../src/alerts/pretend-world.contract.ts')
  const journal = new Journal({ dir, log: recordedLog(), now: Date.now })
  expect(journal.get('alert/ends')).toMatchObject({ phase: 'resolved' })
  expect(journal.get('alert/once')).toMatchObject({ phase: 'firing' })
  await journal.close()
})
