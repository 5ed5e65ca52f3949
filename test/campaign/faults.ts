/** Carries out the faults of a schedule, one beside the other where they overlap. */
import { rmSync, writeFileSync } from 'node:fs'
import { fillDisk } from '../small-disk.ts'
import type { AgentLives } from './agent-lives.ts'
import type { Gate } from './gate.ts'
import type { Ledger, Span } from './ledger.ts'
import type { Receiver } from './receivers.ts'
import type { Fault } from './schedule.ts'

export interface Victims {
  readonly agent: AgentLives
  readonly gate: Gate
  readonly webhook: Receiver
  readonly mail: Receiver
  /** null: this system cannot mount one. */
  readonly smallDisk: string | null
  /** The file that libfaketime reads; null: it is not installed. */
  readonly clockFile: string | null
  readonly ledger: Ledger
}

export class Faults {
  readonly counts = new Map<string, number>()
  readonly #victims: Victims
  /** The latest fault of each target counts; an older one must not end it. */
  readonly #latest = new Map<string, Fault>()
  #isOver = false

  constructor(victims: Victims) {
    this.#victims = victims
  }

  async carryOut(fault: Fault): Promise<void> {
    const { agent, gate, webhook, mail } = this.#victims
    if (this.#isOver) return
    if (fault.kind === 'kill') {
      this.#count(`kill ${fault.who}`)
      await agent.kill(fault.who, fault.aim, fault.delayMs, fault.downMs)
    } else if (fault.kind === 'restart') {
      this.#count('restart')
      await agent.restart(fault.downMs)
    } else if (fault.kind === 'full_disk') await this.#fillDisk(fault)
    else if (fault.kind === 'clock_jump') await this.#jump(fault)
    else if (fault.kind === 'gate')
      await this.#during(
        fault,
        `gate ${fault.how}`,
        () => gate.set(fault.how),
        () => gate.set(null),
      )
    else {
      const receiver = fault.kind === 'webhook' ? webhook : mail
      await this.#during(
        fault,
        `${fault.kind} ${fault.how}`,
        () => receiver.set(fault.how),
        () => receiver.set(null),
      )
    }
  }

  /** Everything works from here on. */
  async end(): Promise<void> {
    this.#isOver = true
    const { gate, webhook, mail, clockFile, smallDisk } = this.#victims
    this.#latest.clear()
    if (smallDisk !== null) rmSync(`${smallDisk}/filler`, { force: true })
    if (clockFile !== null) writeFileSync(clockFile, '+0')
    await Promise.all([gate.set(null), webhook.set(null), mail.set(null)])
  }

  #count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  async #during(fault: Fault & { forMs: number }, name: string, begin: () => Promise<void> | void, end: () => Promise<void> | void) {
    this.#count(name)
    this.#latest.set(fault.kind, fault)
    await begin()
    await new Promise((resolve) => setTimeout(resolve, fault.forMs))
    if (this.#latest.get(fault.kind) === fault) await end()
  }

  async #fillDisk(fault: Fault & { kind: 'full_disk' }): Promise<void> {
    const { smallDisk, ledger } = this.#victims
    if (smallDisk === null) return
    const span: Span = { from: Date.now(), to: Number.POSITIVE_INFINITY }
    const begin = () => {
      ledger.fullDisks.push(span)
      fillDisk(smallDisk)
    }
    await this.#during(fault, 'full disk', begin, () => rmSync(`${smallDisk}/filler`, { force: true }))
    span.to = Date.now()
  }

  async #jump(fault: Fault & { kind: 'clock_jump' }): Promise<void> {
    const { clockFile, ledger } = this.#victims
    if (clockFile === null) return
    const span: Span = { from: Date.now(), to: Number.POSITIVE_INFINITY }
    const begin = () => {
      ledger.clockJumps.push(span)
      writeFileSync(clockFile, `${fault.bySeconds < 0 ? '' : '+'}${fault.bySeconds}`)
    }
    await this.#during(fault, 'clock jump', begin, () => writeFileSync(clockFile, '+0'))
    span.to = Date.now()
  }
}
