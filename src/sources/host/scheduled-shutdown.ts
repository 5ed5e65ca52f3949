/** A shutdown that systemd has scheduled (`shutdown -r +5`). Anybody may read its file. */
import { join } from 'node:path'
import type { GpuEvent } from '../../core/model.ts'
import { tryReadSmallFile } from '../small-file.ts'

const LONGEST_FILE = 4096
const MODES: Readonly<Record<string, string>> = { reboot: 'restart', kexec: 'restart', 'soft-reboot': 'restart' }

export class ScheduledShutdown {
  readonly #path: string
  #dueAt: number | null = null

  constructor(root: string) {
    this.#path = join(root, 'run/systemd/shutdown/scheduled')
  }

  /** What changed since the last look; null: nothing. */
  read(at: number): GpuEvent | null {
    const text = tryReadSmallFile(this.#path, LONGEST_FILE)
    const dueAt = text === null ? null : dueIn(text)
    if (dueAt === this.#dueAt) return null
    const isOver = dueAt === null && (this.#dueAt ?? 0) <= at
    this.#dueAt = dueAt
    if (isOver) return null
    const verb = MODES[/^MODE=(\S+)$/m.exec(text ?? '')?.[1] ?? ''] ?? 'shut down'
    const message = dueAt === null ? 'the shutdown of this machine was canceled' : `this machine was about to ${verb}`
    return { kind: 'event', at, gpu: null, event: 'shutdown', code: dueAt, message, origin: 'systemd' }
  }
}

/** Epoch milliseconds; the file has microseconds. */
function dueIn(text: string): number | null {
  const micros = Number(/^USEC=(\d{1,19})$/m.exec(text)?.[1] ?? Number.NaN)
  return Number.isFinite(micros) ? Math.floor(micros / 1000) : null
}
