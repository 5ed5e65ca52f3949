/** A kill in the very moment of a decision: the decision is there after the restart. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { decodeJournal } from '../src/alerts/journal-line.ts'
import { settingsWith, temporaryDir } from '../src/alerts/pretend-world.contract.ts'
import { UnwrittenLines } from '../src/alerts/unwritten-lines.ts'

const CHILD = fileURLToPath(new URL('./alert-decision-child.mjs', import.meta.url))
const SETTINGS = JSON.stringify(settingsWith({ 'alerts.keep_firing_seconds': 0 }))
/** A folder in memory of its own, as systemd gives a service. */
const MEMORY = mkdtempSync('/dev/shm/gpuwarden-test-')
const env = { ...process.env, RUNTIME_DIRECTORY: MEMORY }
const run = (dir: string, what: 'die' | 'die of a full disk' | 'list') =>
  promisify(execFile)(process.execPath, [CHILD, dir, SETTINGS, what], { env })
afterAll(() => rmSync(MEMORY, { recursive: true }))
const notes = () => readdirSync(MEMORY)

it('keeps what was decided in the moment of a kill, over several of them', async () => {
  const dir = await temporaryDir()
  await expect(run(dir, 'die')).rejects.toMatchObject({ signal: 'SIGKILL' })
  expect(notes().length).toBe(1)
  for (let kill = 0; kill < 2; kill++) await expect(run(dir, 'die')).rejects.toMatchObject({ signal: 'SIGKILL' })
  const { stdout } = await run(dir, 'list')
  const listed = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as string[]
  expect(listed).toContain('once firing')
  expect(listed).toContain('before firing')
  // Ended at each kill, and reported anew by each run.
  expect(stdout).not.toContain('cannot be kept')
  expect(notes()).toEqual([])
})

it('knows the end that was decided in the moment of a kill', async () => {
  const dir = await temporaryDir()
  await expect(run(dir, 'die')).rejects.toMatchObject({ signal: 'SIGKILL' })
  const text = readFileSync(join(dir, 'alerts.journal'), 'utf8')
  const { entries } = decodeJournal(text, (id) => new UnwrittenLines(id, MEMORY).read())
  expect(entries.get('alert/ends')).toMatchObject({ phase: 'resolved' })
  expect(entries.get('alert/once')).toMatchObject({ phase: 'firing' })
})

it('keeps what was decided and sent while the disk takes nothing, however much it was', async () => {
  const dir = await temporaryDir()
  const before = notes()
  const killed = await run(dir, 'die of a full disk').catch((error: unknown) => error as { signal: string; stdout: string })
  expect(killed).toMatchObject({ signal: 'SIGKILL', stdout: expect.stringMatching(/cannot be kept.*sent .*once/s) as string })
  const { stdout } = await run(dir, 'list')
  expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toContain('once firing')
  expect(stdout).not.toMatch(/sent .*once/)
  expect(notes()).toEqual(before)
})
