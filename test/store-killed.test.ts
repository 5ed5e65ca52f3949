/** A log writer that is killed: what it leaves can be read, and the next one tidies up. Runs what was built. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import {
  eventually,
  filesOf,
  gpuSample,
  NOON,
  recordedLog,
  SETTINGS,
  temporaryDir,
  textLines,
  tickEvent,
  wholeAndTorn,
} from '../src/store/sink.contract.ts'
import { createStore } from '../src/store/store.ts'

/** Writes a sample a millisecond, with the number of the sample as its power. */
function startWriter(dir: string) {
  const store = new URL('../dist/store/store.js', import.meta.url).href
  const sample = JSON.stringify(gpuSample(NOON))
  const script = `
    import { createStore } from ${JSON.stringify(store)}
    const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }
    const settings = ${JSON.stringify({ ...SETTINGS, 'log.batch_samples': 3 })}
    const store = createStore({ dir: ${JSON.stringify(dir)}, settings, log, now: Date.now, runId: 'killed' })
    let watts = 0
    setInterval(() => {
      const at = Date.now()
      const gpus = [{ ...${sample}, at, powerWatts: watts++ }]
      store.accept({ type: 'tick', tick: { seq: watts, at, source: 'test', provenance: 'live', gpus, processes: [], host: null, events: [] } })
    }, 1)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

it('leaves files that can be read, and the next run compresses them and begins its own', async () => {
  const dir = join(await temporaryDir(), 'logs')
  const writer = startWriter(dir)
  await eventually(async () => (await textLines(dir, 'gpu_metrics').catch(() => [])).length > 200)
  writer.kill('SIGKILL')
  await once(writer, 'exit')
  const left = await filesOf(dir, 'gpu_metrics')
  const { whole, torn } = await wholeAndTorn(dir, 'gpu_metrics')
  expect(torn).toBeLessThanOrEqual(1)
  expect(whole.length).toBeGreaterThan(200)
  const watts = whole.map((record) => Number(record.power_draw_watts))
  expect(watts).toEqual(watts.map((_, index) => index))
  const store = createStore({ dir, settings: SETTINGS, log: recordedLog(), now: Date.now, runId: 'next' })
  onTestFinished(() => store.close())
  store.accept(tickEvent(NOON, [gpuSample(NOON)]))
  await store.flush()
  expect(left).not.toContain(store.health().currentFiles[0])
  expect(store.health().soleWriter).toBe(true)
  await eventually(async () => (await filesOf(dir, 'gpu_metrics')).includes(`${left[0]}.gz`))
  expect((await wholeAndTorn(dir, 'gpu_metrics')).whole).toHaveLength(whole.length + 1)
})
