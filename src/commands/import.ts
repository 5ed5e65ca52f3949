/** `gpuwarden import`: delivers what an SDK had to keep in a spool file, to the running agent or straight into the log folder. */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../agent/config.ts'
import { SILENT_LOG } from '../agent/one-look.ts'
import type { AgentClient, Answer } from '../core/agent-client.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { readLines } from '../core/recording/file.ts'
import { parseJson } from '../core/recording/json.ts'
import { createStore } from '../store/store.ts'
import { acknowledgedSteps, isAcknowledged, notAcknowledged } from '../training/acknowledgement.ts'
import type { BatchOutcome } from '../training/batch.ts'
import { runOf } from '../training/routes.ts'
import { runEnd, runPost } from '../training/schemas.ts'
import { createTraining } from '../training/training.ts'
import { findAgent } from './run-agent.ts'

/** Where a spool goes. What is refused for good throws. */
interface Target {
  readonly place: string
  run(body: unknown): Promise<void>
  steps(id: string, lines: readonly string[]): Promise<BatchOutcome>
  report(id: string, body: unknown): Promise<void>
  end(id: string, body: unknown): Promise<void>
  close(): Promise<void>
}

const BATCH_LINES = 1000
const BATCH_CHARS = 1024 * 1024

export async function importSpools(config: Config, options: Record<string, unknown>, args: readonly string[]): Promise<number> {
  if (args.length === 0)
    throw new Failure('which spool? Give the file, or the folder of several', {
      exitCode: EXIT.usage,
      hint: 'SDKs keep them in ~/.cache/gpuwarden/spool unless GPUWARDEN_SPOOL says otherwise.',
    })
  const files = (await Promise.all(args.map(spoolsAt))).flat()
  if (files.length === 0) throw new Failure('there is no .jsonl file in the folder', { exitCode: EXIT.noSource })
  const link = await findAgent(config)
  const target = link ? agentTarget(link) : await folderTarget(config)
  try {
    for (const file of files) {
      const { accepted, duplicates, rejected } = await deliver(file, target)
      if (options.keep !== true) await rm(file)
      const details = `${accepted} new steps, ${duplicates} already known${rejected > 0 ? `, ${rejected} refused` : ''}`
      process.stdout.write(`${file}: ${details} → ${target.place}${options.keep === true ? '' : '; file removed'}\n`)
    }
  } finally {
    await target.close()
  }
  return EXIT.ok
}

async function spoolsAt(path: string): Promise<string[]> {
  const found = await stat(path).catch((cause: unknown) => {
    throw new Failure(`${path} cannot be read: ${(cause as Error).message}`, { exitCode: EXIT.noSource, cause })
  })
  if (!found.isDirectory()) return [path]
  return (await readdir(path))
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
    .map((name) => join(path, name))
}

async function deliver(file: string, target: Target): Promise<{ accepted: number; duplicates: number; rejected: number }> {
  const total = { accepted: 0, duplicates: 0, rejected: 0 }
  let id: string | null = null
  let waiting: string[] = []
  let chars = 0
  const send = async () => {
    if (waiting.length === 0 || id === null) return
    const outcome = await target.steps(id, waiting)
    total.accepted += outcome.accepted
    total.duplicates += outcome.duplicates
    total.rejected += outcome.rejected_count
    waiting = []
    chars = 0
  }
  for await (const { lines } of readLines(file, () => undefined))
    for (const line of lines) {
      if (line.trim() === '') continue
      const value = parseJson(line)
      const { run, end, report } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
      if (run !== undefined) {
        await send()
        id = (run as { id?: string }).id ?? null
        await target.run(run)
      }
      if (id === null)
        throw new Failure(`${file} is not a spool file: its first line does not name a run`, {
          exitCode: EXIT.usage,
          hint: 'A spool file starts with {"run": {"id": …, "name": …}}; see docs/training.md.',
        })
      if (run !== undefined) continue
      if (end !== undefined || report !== undefined) {
        await send()
        if (report !== undefined) await target.report(id, report)
        if (end !== undefined) await target.end(id, end)
        continue
      }
      waiting.push(line)
      chars += line.length
      if (waiting.length >= BATCH_LINES || chars >= BATCH_CHARS) await send()
    }
  await send()
  return total
}

function agentTarget(link: AgentClient): Target {
  const path = (id: string, what: string) => `/api/v1/runs/${encodeURIComponent(id)}/${what}`
  return {
    place: link.url,
    run: async (body) => check(await link.tryPost('/api/v1/runs', body), (body as { id: string }).id),
    steps: async (id, lines) => {
      const answer = await link.tryPostLines(path(id, 'steps'), lines, 30_000)
      return acknowledgedSteps(answer, id, lines.length) ?? refused(answer)
    },
    report: async (id, body) => check(await link.tryPost(path(id, 'report'), body), id),
    end: async (id, body) => check(await link.tryPost(path(id, 'end'), body), id),
    close: async () => undefined,
  }
  function check(answer: Answer, id: string): void {
    if (!isAcknowledged(answer, id)) refused(answer)
  }
  function refused(answer: Answer): never {
    const words = notAcknowledged(answer, link.url)
    throw new Failure(answer.code === null ? words : `the agent refused it: ${words}`, {
      exitCode: EXIT.checkFailed,
      hint: 'The spool file is still there.',
    })
  }
}

/** Without an agent: the same room, writing to the same folder. */
async function folderTarget({ values }: Config): Promise<Target> {
  const dir = values['log.dir']
  const store = createStore({ dir, settings: values, log: SILENT_LOG, now: Date.now, runId: 'import' })
  const flush = async () => {
    await store.flush()
    return store.health().state === 'ok'
  }
  const training = createTraining({
    hub: { receiveRun: () => undefined, receiveSteps: (steps) => store.accept({ type: 'steps', steps, provenance: 'live' }) },
    dir,
    log: SILENT_LOG,
    flush,
  })
  await training.open()
  return {
    place: dir,
    run: async (body) => void (await training.postRun(runOf(checked(runPost.safeParse(body))))),
    steps: async (id, lines) => {
      const outcome = await training.postSteps(id, Buffer.from(lines.join('\n')))
      if (!outcome) throw new Failure(`run ${id} is not known in ${dir}`, { exitCode: EXIT.internal })
      return outcome
    },
    report: async (id, body) => void (await training.keepReport(id, body as Record<string, unknown>)),
    end: async (id, body) => {
      const { outcome, message, ended_at, rank } = checked(runEnd.safeParse(body))
      await training.endRun(id, { outcome, message: message ?? null, endedAt: ended_at ?? Date.now(), rank: rank ?? null })
    },
    close: async () => {
      await training.close()
      const isWritten = await flush()
      await store.close()
      if (!isWritten)
        throw new Failure(`the log in ${dir} cannot be written`, { exitCode: EXIT.checkFailed, hint: 'Free some space and import again.' })
    },
  }
}

function checked<T>(result: { success: boolean; data?: T; error?: { message: string } }): T {
  if (result.success && result.data !== undefined) return result.data
  throw new Failure(`the spool file has no valid run: ${result.error?.message ?? 'not valid'}`, { exitCode: EXIT.usage })
}
