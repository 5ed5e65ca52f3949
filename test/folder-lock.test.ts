/** Many processes that want one lock at the same moment: with the built program, because each is a process of its own. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ownIdentity } from '../src/core/process-identity.ts'

const RACER = `
  import { FolderLock } from ${JSON.stringify(new URL('../dist/core/folder-lock.js', import.meta.url).href)}
  const [folder, from, rounds] = process.argv.slice(2)
  const won = []
  for (let round = 0; round < Number(rounds); round++) {
    while (Date.now() < Number(from) + round * 50);
    const lock = new FolderLock(folder + '/' + round + '.lock', 0o600)
    const outcome = round % 2 === 0 ? lock.acquireNow() : await lock.acquire()
    if (outcome.held) won.push(round)
  }
  console.log(JSON.stringify(won))
  // The owners live until all have asked.
  process.stdin.resume()
`

it('is won by exactly one of many processes that start at the same moment', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-lock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const dead = spawnSync(process.execPath, ['-e', '']).pid
  const rounds = 60
  // Every third lock is free, the others were left by a dead process.
  for (let round = 0; round < rounds; round++)
    if (round % 3 !== 0) writeFileSync(join(folder, `${round}.lock`), `${JSON.stringify({ ...ownIdentity(), pid: dead })}\n`)
  writeFileSync(join(folder, 'racer.mjs'), RACER)
  const from = String(Date.now() + 1500)
  const racers = Array.from({ length: 6 }, () =>
    spawn(process.execPath, [join(folder, 'racer.mjs'), folder, from, String(rounds)], { stdio: 'pipe' }),
  )
  onTestFinished(() => {
    for (const racer of racers) racer.kill('SIGKILL')
  })
  const lines = await Promise.all(
    racers.map(async ({ stdout }) => {
      for await (const chunk of stdout) return JSON.parse(String(chunk)) as number[]
      return []
    }),
  )
  expect(lines.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: rounds }, (_, round) => round))
  expect(readdirSync(folder).filter((name) => !/^\d+\.lock$|^racer/.test(name))).toEqual([])
})
