/** Spools of dead processes: delivered by the next process that reaches the same agent. */
import { closeSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentClient } from '../core/agent-client.ts'
import { isStillRunning } from '../core/process-identity.ts'
import { refuseOtherThanFile } from '../core/system-file.ts'
import { acknowledgedSteps, isAcknowledged, isRefusedByAgent } from './acknowledgement.ts'
import { readWholeLines } from './step-spool.ts'

const HEAD_BYTES = 256 * 1024
const BATCH_LINES = 1000
const BATCH_BYTES = 1024 * 1024

interface Head {
  readonly run: { readonly id: string }
  readonly url: string
  /** Only spools of Node.js have it: those of Python are locked by their process, and left to it. */
  readonly process: { readonly pid: number; readonly start: number }
}

/** Oldest first. Returns how many steps were delivered; stops at the first that the agent cannot accept now. */
export async function deliverLeftSpools(folder: string | null, link: AgentClient): Promise<number> {
  let delivered = 0
  for (const path of folder === null ? [] : spoolsIn(folder)) {
    const file = opened(path)
    if (file === null) continue
    try {
      const { lines, next } = readWholeLines(file, 0, 1, HEAD_BYTES)
      const head = headOf(lines[0])
      if (head === null || head.url !== link.url || isStillRunning(head.process.pid, head.process.start || null)) continue
      const announced = await link.tryPost('/api/v1/runs', head.run)
      if (isRefusedByAgent(announced)) {
        // The agent will never accept it: kept for a person, but not tried again.
        renameSync(path, `${path}.refused`)
        continue
      }
      if (!isAcknowledged(announced, head.run.id)) return delivered
      const count = await deliver(file, next, head.run.id, link)
      if (count === null) return delivered
      delivered += count
      rmSync(path, { force: true })
    } finally {
      closeSync(file)
    }
  }
  return delivered
}

/** null: not now. */
async function deliver(file: number, from: number, id: string, link: AgentClient): Promise<number | null> {
  let delivered = 0
  for (let offset = from; ; ) {
    const { lines, next } = readWholeLines(file, offset, BATCH_LINES, BATCH_BYTES)
    if (lines.length === 0) return delivered
    const steps = lines.filter((line) => !line.startsWith('{"end"'))
    if (steps.length > 0) {
      const answer = await link.tryPostLines(`/api/v1/runs/${id}/steps`, steps)
      const outcome = acknowledgedSteps(answer, id, steps.filter((line) => line.trim() !== '').length)
      if (outcome === null && !isRefusedByAgent(answer)) return null
      delivered += outcome?.accepted ?? 0
    }
    for (const line of lines.filter((one) => one.startsWith('{"end"'))) {
      const end = endOf(line)
      if (end === null) continue
      const answer = await link.tryPost(`/api/v1/runs/${id}/end`, end)
      if (!isAcknowledged(answer, id) && !isRefusedByAgent(answer)) return null
    }
    offset = next
  }
}

/** null: damaged. */
function endOf(line: string): unknown {
  try {
    return (JSON.parse(line) as { end: unknown }).end
  } catch {
    return null
  }
}

function spoolsIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => join(folder, name))
      .map((path) => ({ path, at: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
      .sort((a, b) => a.at - b.at)
      .map(({ path }) => path)
  } catch {
    // No such folder, or not readable: then nothing in it is for us.
    return []
  }
}

function opened(path: string): number | null {
  try {
    refuseOtherThanFile(path)
    return openSync(path, 'r')
  } catch {
    // Delivered by another process in the meantime, or somebody else's.
    return null
  }
}

function headOf(line: string | undefined): Head | null {
  try {
    const head = JSON.parse(line ?? '') as Partial<Head> | null
    const isOurs = typeof head?.run?.id === 'string' && typeof head.process?.pid === 'number' && typeof head.process.start === 'number'
    return isOurs ? (head as Head) : null
  } catch {
    // A head torn by the death of the process: nothing follows it.
    return null
  }
}
