import { describe, expect, it } from 'vitest'
import { render } from './render.ts'
import { finding, gpuInfo, gpuSample, processView, trainingStep, worldState } from './screen-data.fixture.ts'
import { FIRST_VIEW, type ScreenData } from './screen-data.ts'
import { createTheme } from './theme.ts'

const slow = finding('straggler', { message: 'Rank 1 is slow', subject: { run: 'run-1', rank: 1 } as never })
const world = worldState({
  infos: [gpuInfo(0), gpuInfo(1)],
  samples: [gpuSample('GPU-0'), gpuSample('GPU-1', { temperatureCelsius: 91, clockEventReasons: 0x20 })],
  processes: [processView(10, 'GPU-0', {}), processView(11, 'GPU-1', { residentBytes: 3 * 1024 ** 3 })],
  findings: [slow],
  steps: [trainingStep(7), trainingStep(6, { rank: 1, stepSeconds: 1, phaseSeconds: { data: 0.6, forward: 0.4 } })],
})

function dataWithPlaces(): ScreenData {
  const data = world.data({ columns: 120, gpu: null })
  const places = [0, 1].map((rank) => ({ rank, host: null, gpu: `GPU-${rank}`, pid: 10 + rank }))
  return { ...data, runs: data.runs.map((run) => ({ ...run, places })) }
}

describe('ranks side by side', () => {
  it('show step, phase, memory, GPU, heat, throttling and host memory, and who is slow', () => {
    const data = dataWithPlaces()
    const [run] = data.runs
    expect(run?.rankSteps.map(({ rank }) => rank)).toEqual([0, 1])
    const view = { ...FIRST_VIEW, overlay: { kind: 'ranks', run: run?.id ?? '', offset: 0 } as const }
    const text = render(data, view, { columns: 120, rows: 40 }, createTheme('dark', 'many', false)).grid.text()
    const row = text.split('\n').find((line) => /│ 1 +6 /.test(line)) ?? text
    for (const word of ['1 s', '60% data', '91 °C', 'too hot', '3.0G']) expect(row).toContain(word)
    expect(text).toContain('Rank 1 is slow')
  })

  it('stay readable when the run is gone', () => {
    const view = { ...FIRST_VIEW, overlay: { kind: 'ranks', run: 'gone', offset: 0 } as const }
    expect(render(dataWithPlaces(), view, { columns: 60, rows: 20 }, createTheme('dark', 'many', true)).grid.text()).toContain(
      'Ranks of gone',
    )
  })
})
