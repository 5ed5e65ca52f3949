// npm run campaign -- --minutes 3 --seed 7 [--without clock_jump,full_disk]: kills, full disks, clock jumps and bad receivers against the built program, then an audit.

import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runnerImport } from 'vite'

const text = { type: 'string' }
const { values } = parseArgs({ options: { hours: text, minutes: text, seed: text, without: text } })
const minutes = values.hours === undefined ? Number(values.minutes ?? 3) : Number(values.hours) * 60
const seed = Number(values.seed ?? Math.floor(Math.random() * 1e6))
if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
  console.error('expected --hours or --minutes above 0, and a whole number as --seed')
  process.exit(2)
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130))
const { module } = await runnerImport(fileURLToPath(new URL('./report.ts', import.meta.url)))
process.exit((await module.campaign(seed, minutes, values.without?.split(',') ?? [])) ? 0 : 1)
