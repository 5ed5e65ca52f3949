/** `gpuwarden import` over a spool file that holds anything at all. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/agent/config.ts'
import { importSpools } from '../../src/commands/import.ts'
import { EXIT, Failure } from '../../src/core/failure.ts'
import type { FuzzReader } from './readers.ts'

const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-fuzz-spool-'))
process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
const file = join(dir, 'spool.jsonl')
/** Nobody listens on the port of discard: everything goes into the folder. */
const config = loadConfig({ flags: { 'log.dir': join(dir, 'logs'), 'server.port': 9, 'log.compress': false }, env: {} })

export const spoolReader: FuzzReader = {
  name: 'spool',
  examples: [
    [
      '{"run":{"id":"r1","name":"my-training","host":"node7","pid":4711,"started_at":1760000000000},"url":"http://127.0.0.1:4780","format":1}',
      '{"seq":1,"step":0,"t":1760000000000,"rank":0,"pid":4711,"loss":2.31}',
      '{"report":{"kind":"oom"}}',
      '{"end":{"outcome":"success","rank":0,"ended_at":1760000009000}}',
      '',
    ].join('\n'),
  ],
  async read(bytes) {
    writeFileSync(file, bytes)
    const write = process.stdout.write.bind(process.stdout)
    process.stdout.write = () => true
    try {
      await importSpools(config, { keep: true }, [file])
    } catch (error) {
      if (!(error instanceof Failure) || error.exitCode === EXIT.internal) throw error
    } finally {
      process.stdout.write = write
    }
  },
}
