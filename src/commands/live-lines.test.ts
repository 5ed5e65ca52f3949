import { describe, expect, it } from 'vitest'
import { Hub } from '../agent/hub.ts'
import { SILENT_LOG } from '../agent/one-look.ts'
import { State } from '../agent/state.ts'
import { healthWith } from '../core/model.fixture.ts'
import { demo } from '../sources/demo/index.ts'
import { sourceEnv } from '../sources/source.contract.ts'
import { liveLines } from './live-lines.ts'

const AT = 1_760_000_000_000
const SELF = { version: '0', startedAt: AT, runId: '', pid: 1, cpuSeconds: 0, residentBytes: 0 }

async function stateOf(gpus: number, name?: string): Promise<State> {
  const source = await demo.open(sourceEnv({ options: { demoGpus: gpus } }))
  if (source === null) throw new Error('the demo is always there')
  const health = healthWith(AT, { source: 'demo', provenance: 'simulated' })
  const state = new State({ now: () => AT, health: () => [health], sinks: () => [], self: () => SELF, devices: null })
  const devices = name === undefined ? source.devices() : source.devices().map((info) => ({ ...info, name, provenance: 'live' as const }))
  const hub = new Hub({ state, log: SILENT_LOG, onProcesses: () => undefined })
  hub.receiveDevices('demo', devices)
  const samples = await source.read({ at: AT, monotonicMs: 0, tick: 0 })
  hub.receive({ source: 'demo', provenance: 'simulated', at: AT, samples: samples.filter((sample) => sample.kind === 'gpu') })
  return state
}

describe('liveLines', () => {
  it('shows temperature, power and processes of a real card on a terminal of 80 columns', async () => {
    const [, line] = liveLines(await stateOf(2, 'NVIDIA H200'), 80, 24)
    expect(line).toMatch(/^GPU 1 {2}H200 {2}util +\d+% {2}mem +47% 37\.7 GiB\/79\.6 GiB +64 °C +\d+ W {2}proc 1$/)
  })

  it('says what is wrong with the log', async () => {
    expect(liveLines(await stateOf(1), 80, 24, ['log not written since 02:10: no space left'])).toContain(
      '! log not written since 02:10: no space left',
    )
  })

  it('never cuts a figure, however narrow it is', async () => {
    const state = await stateOf(2)
    const whole = liveLines(state, 200, 24)[1] ?? ''
    expect(whole).toMatch(/SIMULATED.*█.*°C.* W {2}proc 1$/)
    const figures = (line: string) => line.match(/\d[\d.]*(%| GiB|°C| W)?/g) ?? []
    for (let columns = 40; columns < 130; columns++) {
      const line = liveLines(state, columns, 24)[1] ?? ''
      expect(line.length).toBeLessThan(columns)
      for (const figure of figures(line)) expect(figures(whole)).toContain(figure)
    }
  })
})
