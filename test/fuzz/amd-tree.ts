/** The AMD source over its files, one of which holds anything at all. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sample } from '../../src/core/model.ts'
import { amd } from '../../src/sources/amd/index.ts'
import { sourceEnv } from '../../src/sources/source.contract.ts'
import { FIXTURES } from '../program.ts'
import type { FuzzReader } from './readers.ts'

const root = mkdtempSync(join(tmpdir(), 'gpuwarden-fuzz-amd-'))
cpSync(join(FIXTURES, 'amd/radeon'), root, { recursive: true, verbatimSymlinks: true })
process.once('exit', () => rmSync(root, { recursive: true, force: true }))

/** The first byte of an input says which file it is. */
const files = readdirSync(root, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
  .sort()
  .slice(0, 256)

export const amdTree: FuzzReader = {
  name: 'amd-sysfs',
  examples: files.map((file, index) => Buffer.concat([Buffer.from([index]), readFileSync(file)])),
  async read(bytes) {
    const file = files[(bytes[0] ?? 0) % files.length] ?? ''
    const before = readFileSync(file)
    writeFileSync(file, bytes.subarray(1))
    try {
      const source = await amd.open(sourceEnv({ root }))
      if (source === null) return
      try {
        for (let tick = 0; tick < 2; tick++)
          for (const sample of await source.read({ at: 1_760_000_000_000 + tick * 1000, monotonicMs: tick * 1000, tick }))
            mustBeReadings(sample)
        for (const device of source.devices()) JSON.stringify(device)
      } finally {
        await source.close()
      }
    } finally {
      writeFileSync(file, before)
    }
  },
}

function mustBeReadings(sample: Sample): void {
  for (const [field, value] of Object.entries(sample))
    if (typeof value === 'number' && !Number.isFinite(value)) throw new Error(`${field} is ${value}`)
}
