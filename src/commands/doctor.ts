import { randomBytes } from 'node:crypto'
import type { Config } from '../agent/config.ts'
import { impatient, SILENT_LOG, sayWaiting } from '../agent/one-look.ts'
import { Sampling } from '../agent/sampling.ts'
import { EXIT } from '../core/failure.ts'
import { examine } from './doctor/index.ts'

const SIGNS = { ok: 'ok     ', advice: 'note   ', missing: 'MISSING' } as const

export async function doctor(config: Config, options: Record<string, unknown>): Promise<number> {
  const values = impatient(config)
  const sampling = new Sampling({ values, log: SILENT_LOG, runId: randomBytes(16).toString('hex') })
  const stopSaying = sayWaiting(sampling)
  try {
    const results = await examine({ values, configWarnings: config.warnings, sampling })
    const isMissing = results.some((result) => result.state === 'missing')
    if (options.json === true) process.stdout.write(`${JSON.stringify({ ok: !isMissing, checks: results }, null, 2)}\n`)
    else {
      for (const { name, state, message, fix } of results) {
        process.stdout.write(`${SIGNS[state]} ${name.padEnd(14)} ${message}\n`)
        if (fix !== null) process.stdout.write(`${' '.repeat(23)}→ ${fix}\n`)
      }
      process.stdout.write(isMissing ? '\nSomething needed is missing: see above.\n' : '\nEverything needed is there.\n')
    }
    return isMissing ? EXIT.checkFailed : EXIT.ok
  } finally {
    stopSaying()
    await sampling.stop()
  }
}
