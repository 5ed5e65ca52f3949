/** Sources over the files of a card, one of which holds anything at all. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sample } from '../../src/core/model.ts'
import type { SourceKind } from '../../src/core/source-contract.ts'
import { amd } from '../../src/sources/amd/index.ts'
import { MI300X_CPX } from '../../src/sources/amd/trees.fixture.ts'
import { type MachineTree, makeMachine } from '../../src/sources/drm/tree.fixture.ts'
import { intel } from '../../src/sources/intel/index.ts'
import { ARC_A380, ARC_B580, MAX_1550, UHD_770 } from '../../src/sources/intel/trees.fixture.ts'
import { sourceEnv } from '../../src/sources/source.contract.ts'
import { FIXTURES } from '../program.ts'
import type { FuzzReader } from './readers.ts'

function fixtureTree(name: string): string {
  const root = mkdtempSync(join(tmpdir(), 'gpuwarden-fuzz-'))
  cpSync(join(FIXTURES, name), root, { recursive: true, verbatimSymlinks: true })
  return root
}

const machine = (tree: MachineTree) => makeMachine(tree).root

export const sysfsTrees: readonly FuzzReader[] = [
  treeReader('amd-sysfs', amd, fixtureTree('amd/radeon')),
  treeReader('amd-sysfs-partitions', amd, machine(MI300X_CPX)),
  treeReader('intel-sysfs-xe', intel, machine(ARC_B580)),
  treeReader('intel-sysfs-tiles', intel, machine(MAX_1550)),
  treeReader('intel-sysfs-i915', intel, machine(UHD_770)),
  treeReader('intel-sysfs-i915-old', intel, machine(ARC_A380)),
]

/** The first byte of an input says which file it is. */
function treeReader(name: string, kind: SourceKind, root: string): FuzzReader {
  process.once('exit', () => rmSync(root, { recursive: true, force: true }))
  const files = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .slice(0, 256)
  return {
    name,
    examples: files.map((file, index) => Buffer.concat([Buffer.from([index]), readFileSync(file)])),
    async read(bytes) {
      const file = files[(bytes[0] ?? 0) % files.length] ?? ''
      const before = readFileSync(file)
      writeFileSync(file, bytes.subarray(1))
      try {
        const source = await kind.open(sourceEnv({ root }))
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
}

function mustBeReadings(sample: Sample): void {
  for (const [field, value] of Object.entries(sample))
    if (
      typeof value === 'number' &&
      !(Number.isFinite(value) && (value >= 0 || field.endsWith('Celsius')) && (value <= 1 || !field.endsWith('Ratio')))
    )
      throw new Error(`${field} is ${value}`)
}
