/** GPUs that get hot or count memory errors, by the script of the fake driver. */
import type { FakeNvmlScript } from '../fake-nvml/index.ts'
import type { Ailing, Ledger } from './ledger.ts'
import type { Ailment } from './schedule.ts'

const HOT_CELSIUS = 99
const COOL_CELSIUS = 50
/** Detectors need a few seconds of samples in a row; kills interrupt them. */
const NOTICE_LIMIT_MS = 240_000

export class Ailments {
  readonly #ledger: Ledger
  readonly #nvml: FakeNvmlScript
  #open = 0

  constructor(ledger: Ledger, nvml: FakeNvmlScript) {
    this.#ledger = ledger
    this.#nvml = nvml
  }

  /** Lasts until the agent shows it, and for a while after. */
  async suffer(ailment: Ailment): Promise<void> {
    const { kind, gpu, holdMs } = ailment
    const fingerprint = `${kind}|gpu=GPU-fa4e0000-0000-4000-8000-${gpu.toString(16).padStart(12, '0')}`
    const ailing: Ailing = { ailment, fingerprint, beganAt: Date.now(), firingAt: null, clearedAt: null }
    this.#ledger.ailing.push(ailing)
    if (kind === 'ecc') return this.#nvml.update({ [`gpu${gpu}.ecc_uncorrected`]: 1, [`gpu${gpu}.ecc_uncorrected_aggregate`]: 1 })
    this.#open++
    this.#nvml.update({ [`gpu${gpu}.temp`]: HOT_CELSIUS })
    const limit = Date.now() + NOTICE_LIMIT_MS
    while (ailing.firingAt === null && Date.now() < limit) await new Promise((resolve) => setTimeout(resolve, 200))
    await new Promise((resolve) => setTimeout(resolve, holdMs))
    ailing.clearedAt = Date.now()
    this.#nvml.update({ [`gpu${gpu}.temp`]: COOL_CELSIUS })
    this.#open--
  }

  async allOver(deadline: number): Promise<void> {
    while (this.#open > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
