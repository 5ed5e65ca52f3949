/**
 * Readers of foreign bytes: none throws, hangs or gives nonsense, whatever it gets. What once failed is in corpus/ and tried first.
 * Seconds here; longer by hand: npm run fuzz -- --seconds 60 [--reader NAME].
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, describe, it } from 'vitest'
import { damaged } from './mutations.ts'
import { READERS } from './readers.ts'

const CORPUS = fileURLToPath(new URL('./corpus/', import.meta.url))
const SECONDS = Number(process.env.GPUWARDEN_FUZZ_SECONDS ?? 1.5)
const ONLY = process.env.GPUWARDEN_FUZZ_READER
/** One input must not take this long: it would be a way to stop the agent. */
const SLOWEST_MS = 2000

afterAll(async () => {
  for (const { close } of READERS) await close?.()
})

function corpusOf(name: string): string[] {
  try {
    return readdirSync(join(CORPUS, name)).map((file) => join(CORPUS, name, file))
  } catch {
    return []
  }
}

describe.each(READERS.filter(({ name }) => ONLY === undefined || name === ONLY))('$name', ({ name, examples, read }) => {
  const timed = async (bytes: Buffer) => {
    const began = process.cpuUsage()
    await read(bytes)
    const { user, system } = process.cpuUsage(began)
    if ((user + system) / 1000 > SLOWEST_MS) throw new Error(`took ${Math.round((user + system) / 1000)} ms of CPU time`)
  }

  it('reads its examples', async () => {
    for (const example of examples) await timed(Buffer.from(example as string))
  })

  it('passes over everything that once failed', async () => {
    for (const file of corpusOf(name)) await timed(readFileSync(file))
  })

  it('passes over anything', { timeout: SECONDS * 1000 + 60_000 }, async () => {
    const result = await fc.check(fc.asyncProperty(damaged(examples), timed), {
      numRuns: 1e9,
      interruptAfterTimeLimit: SECONDS * 1000,
      markInterruptAsFailure: false,
    })
    const bytes = result.failed ? result.counterexample?.[0] : undefined
    if (bytes === undefined) return
    const file = join(CORPUS, name, createHash('sha256').update(bytes).digest('hex').slice(0, 16))
    mkdirSync(join(CORPUS, name), { recursive: true })
    writeFileSync(file, bytes)
    throw new Error(`${file}: ${bytes.toString().slice(0, 300)}`, { cause: result.errorInstance })
  })
})
