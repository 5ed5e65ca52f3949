/** Killed again and again while alerts fire, against a server that counts. Runs what was built. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { settingsWith, temporaryDir } from '../../src/alerts/pretend-world.contract.ts'

const CHILD = fileURLToPath(new URL('./alerts-killed-child.mjs', import.meta.url))
const KILLS = 200
/** Everything at once, and no limits: what is tested is that nothing is lost or doubled. */
const SETTINGS = JSON.stringify(
  settingsWith({ 'alerts.group_seconds': 0, 'alerts.keep_firing_seconds': 0, 'alerts.messages_per_hour': 1e9, 'alerts.burst': 1e6 }),
)

interface Received {
  readonly run: number
  readonly id: string
  readonly alerts: readonly { readonly fingerprint: string; readonly status: string }[]
}

/** Answers after a moment, so that some kills hit a message that has arrived and is not known to have. */
async function countingServer(): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      received.push(JSON.parse(body) as Received)
      setTimeout(() => response.end('ok'), received.length % 8)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, received }
}

/** True when it was killed: a moment after so many lines, so at all stages, on slow machines as on fast ones. */
async function run(args: readonly string[], lines: string[], kill: { afterLines: number; ms: number } | null): Promise<boolean> {
  const child = spawn(process.execPath, [CHILD, ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
  const reader = createInterface({ input: child.stdout })
  let count = 0
  const strike = () => {
    if (kill && count++ === kill.afterLines) setTimeout(() => child.kill('SIGKILL'), kill.ms)
  }
  child.on('spawn', strike)
  reader.on('line', (line) => {
    lines.push(line)
    strike()
  })
  const [[, signal]] = await Promise.all([once(child, 'exit'), once(reader, 'close')])
  return signal === 'SIGKILL'
}

it(`loses nothing and sends nothing twice but what was on its way, over ${KILLS} kills`, { timeout: 480_000 }, async () => {
  const dir = await temporaryDir()
  const { url, received } = await countingServer()
  const lines: string[] = []
  let [killed, runs] = [0, 0]
  for (; killed < KILLS && runs < KILLS + 20; runs++) {
    // One in ten before the program is up, or in the middle of recovery.
    const when = runs % 10 === 9 ? { afterLines: 0, ms: 20 + (runs % 7) * 10 } : { afterLines: 1 + (runs % 8), ms: (runs * 7) % 13 }
    if (await run([dir, url, String(runs), 'raise', SETTINGS], lines, when)) killed++
  }
  expect(killed).toBe(KILLS)
  await run([dir, url, String(runs), 'drain', SETTINGS], lines, null)
  expect(lines.at(-1)).toBe('drained')
  expect(lines.filter((line) => line.startsWith('fault'))).toEqual([])

  const named = (word: string) => lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
  const heard = (...statuses: string[]) =>
    new Set(
      received.flatMap(({ alerts }) => alerts.filter(({ status }) => statuses.includes(status)).map(({ fingerprint }) => fingerprint)),
    )
  const [raised, cleared, seen] = [named('raised'), named('cleared'), named('seen')]
  // How many there are depends on how fast the machine is; with a few dozen of each the comparisons below mean something.
  for (const names of [raised, seen, cleared]) expect(names.length).toBeGreaterThan(KILLS / 5)

  const [begun, over] = [heard('firing', 'late'), heard('resolved', 'late')]
  expect(raised.filter((name) => !begun.has(name))).toEqual([])
  expect(seen.filter((name) => !begun.has(name))).toEqual([])
  expect(cleared.filter((name) => !over.has(name))).toEqual([])
  expect(over.size).toBeGreaterThan(0)

  // The same trouble in two different messages would be a second alert, not a repetition of one that was on its way.
  const messagesOf = new Map<string, Set<string>>()
  for (const { id, alerts } of received)
    for (const { fingerprint, status } of alerts) {
      if (status === 'resolved') continue
      const ids = messagesOf.get(fingerprint) ?? new Set()
      messagesOf.set(fingerprint, ids.add(id.replace(/-r\d+$/, '')))
    }
  expect([...messagesOf].filter(([, ids]) => ids.size > 1)).toEqual([])

  const arrived = new Set<string>()
  const repeatedIn = new Map<number, number>()
  for (const { run: number, id } of received) {
    const message = id.replace(/-r\d+$/, '')
    if (arrived.has(message)) repeatedIn.set(number, (repeatedIn.get(number) ?? 0) + 1)
    arrived.add(message)
  }
  expect(Math.max(0, ...repeatedIn.values())).toBeLessThanOrEqual(1)
  // Without a single message caught on its way the test would have shown nothing.
  expect(repeatedIn.size).toBeGreaterThan(0)
})
