/** Whole frames, compared with files. UPDATE_GOLDEN=1 writes them anew: look at the difference before you keep it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { healthWith } from '../core/model.fixture.ts'
import type { LiveState } from './live-state.ts'
import { render, type Size } from './render.ts'
import {
  AT,
  bareSample,
  emptyState,
  finding,
  gpuInfo,
  gpuSample,
  processView,
  recordedState,
  trainingStep,
  worldState,
} from './screen-data.fixture.ts'
import { FIRST_VIEW, type View } from './screen-data.ts'
import { textWidth } from './text-width.ts'
import { createTheme } from './theme.ts'

process.env.TZ = 'UTC'
const TRACES = fileURLToPath(new URL('../../fixtures/traces/', import.meta.url))
const GIB = 1024 ** 3
/** After the finding, and before what it is about is over. */
const INTRUDER_SECONDS = 30
const DIVERGED_SECONDS = 26

function frame(state: LiveState, size: Size, view: Partial<View> = {}, ascii = false): string {
  const theme = createTheme('dark', 'many', ascii)
  const merged = { ...FIRST_VIEW, ...view }
  return render(state.data({ columns: size.columns * 2, gpu: merged.gpu }), merged, size, theme).grid.text()
}

function expectGolden(name: string, text: string): void {
  const path = fileURLToPath(new URL(`./${name}.golden.txt`, import.meta.url))
  if (process.env.UPDATE_GOLDEN === '1' || !existsSync(path)) {
    if (process.env.UPDATE_GOLDEN !== '1') throw new Error(`${path} does not exist: run with UPDATE_GOLDEN=1 and look at it`)
    writeFileSync(path, `${text}\n`)
  }
  expect(`${text}\n`).toBe(readFileSync(path, 'utf8'))
}

const many = (count: number) =>
  worldState({
    infos: Array.from({ length: count }, (_, index) => gpuInfo(index)),
    samples: Array.from({ length: count }, (_, index) => gpuSample(`GPU-${index}`, { utilizationRatio: (index % 11) / 10 })),
    processes: Array.from({ length: count * 2 }, (_, index) => processView(1000 + index, `GPU-${index % count}`, {})),
  })

const busy = () =>
  worldState({
    infos: [gpuInfo(0, { pcieWidthMax: 16 }), gpuInfo(1, { name: 'NVIDIA A100-SXM4-40GB' })],
    samples: [
      gpuSample('GPU-0', {
        smActiveRatio: 0.88,
        tensorActiveRatio: 0.61,
        dramActiveRatio: 0.44,
        pcieRxBytesPerSecond: 1.2e9,
        pcieTxBytesPerSecond: 3e8,
        nvlinkRxBytesPerSecond: 2.2e10,
        nvlinkTxBytesPerSecond: 2.1e10,
        pcieGeneration: 5,
        pcieWidth: 8,
        eccUncorrectedVolatileCount: 0,
      }),
      gpuSample('GPU-1', {
        utilizationRatio: 0,
        temperatureCelsius: 84,
        clockEventReasons: 0x48,
        memoryUsedBytes: 79 * GIB,
        eccUncorrectedVolatileCount: 3,
      }),
    ],
    processes: [
      processView(4711, 'GPU-0', { slurmJob: '48213' }),
      processView(4712, 'GPU-0', { parentPid: 4711, user: 'ada' }),
      processView(666, 'GPU-1', { user: 'mallory', command: ['./miner'] }),
      processView(777, 'GPU-1', { user: 'bob', command: ['jupyter'] }, { smRatio: 0 }),
      processView(888, 'GPU-1', null, { memoryUsedBytes: null, smRatio: null }),
    ],
    findings: [
      finding('intruder', { pid: 666, gpu: 'GPU-1', severity: 'critical', message: 'Process 666 of mallory is not expected on GPU 1.' }),
      finding('idle_holding', { pid: 777, gpu: 'GPU-1', message: 'Process 777 on GPU 1 of bob holds 10.0 GiB and has not used the GPU.' }),
      finding('oom', {
        gpu: 'GPU-1',
        message: 'GPU 1: memory in use is 99 % of 80.0 GiB; it is full in 4 min',
        predictedAt: 1_760_000_000_000 + 240_000,
        evidence: { bytesPerSecond: 1e7, capacityBytes: 80 * GIB },
      }),
    ],
    steps: Array.from({ length: 60 }, (_, index) => trainingStep(index + 1, { custom: { total_steps: 1000 } })),
  })

describe('golden frames', () => {
  it('shows a leak that was recorded, and when the memory is full', async () => {
    const text = frame(await recordedState(`${TRACES}leak_graph`, 70), { columns: 80, rows: 24 })
    expect(text).toMatch(/^ !.* leak +Run leak_graph on GPU 0 leaks \d+ MiB per step/m)
    expect(text).toMatch(/LEAK {2}OOM in \d+ s/)
    expect(text).toMatch(/132\.1\/140\.4 GiB {2}full in \d+ s/)
    expectGolden('leak-80x24', text)
  })

  it('shows an intruder that was recorded, while it is there', async () => {
    const text = frame(await recordedState(`${TRACES}intruder`, INTRUDER_SECONDS), { columns: 120, rows: 30 })
    expect(text).toMatch(/^ !.* intruder +An unknown process \(PID 1248/m)
    expect(text).toMatch(/^! +1248 /m)
    expectGolden('intruder-120x30', text)
  })

  it('shows a loss that became NaN', async () => {
    const text = frame(await recordedState(`${TRACES}divergence`, DIVERGED_SECONDS), { columns: 100, rows: 24 })
    expect(text).toMatch(/loss NaN/)
    expect(text).toMatch(/^ !!.* (loss|nan)/m)
    expectGolden('nan-loss-100x24', text)
  })

  it('shows a healthy training that was recorded', async () => {
    expectGolden('healthy-160x50', frame(await recordedState(`${TRACES}healthy`, 120), { columns: 160, rows: 50 }))
  })

  it.each([
    [40, 12],
    [80, 24],
    [160, 50],
  ])('fits %d×%d', (columns, rows) => {
    expectGolden(`busy-${columns}x${rows}`, frame(busy(), { columns, rows }))
  })

  it('draws with ASCII alone', () => {
    const text = frame(busy(), { columns: 80, rows: 24 }, {}, true)
    expect(text.replace(/[\n\x20-\x7e]/g, '')).toBe('')
    expectGolden('busy-ascii-80x24', text)
  })

  it('shows one GPU alone with its memory ledger', () => {
    expectGolden('one-gpu-80x24', frame(busy(), { columns: 80, rows: 24 }, { gpu: 'GPU-0' }))
  })

  it('shows 8 GPUs in rows and 64 with scrolling', () => {
    expectGolden('eight-gpus-80x24', frame(many(8), { columns: 80, rows: 24 }))
    expectGolden('sixty-four-gpus-200x60', frame(many(64), { columns: 200, rows: 60 }))
  })

  it('says N/A where the device does not report a value, and nothing else', () => {
    const text = frame(
      worldState({
        infos: [
          gpuInfo(0, {
            temperatureSlowdownCelsius: null,
            temperatureMaxCelsius: null,
            powerLimitWatts: null,
            powerLimitEnforcedWatts: null,
          }),
        ],
        samples: [bareSample('GPU-0')],
        host: null,
      }),
      { columns: 80, rows: 24 },
    )
    expectGolden('nothing-known-80x24', text)
    expect(text).not.toMatch(/\b0%|\b0 W|null|NaN|undefined/)
  })
})

describe('render', () => {
  it('says NaN when the loss is NaN', () => {
    const state = worldState({
      infos: [gpuInfo(0)],
      samples: [gpuSample('GPU-0')],
      steps: [trainingStep(1), trainingStep(2, { loss: Number.NaN })],
    })
    expect(frame(state, { columns: 80, rows: 24 })).toContain('loss NaN')
  })

  it('counts a card and its MIG instances once in the title', () => {
    const card = gpuInfo(0, { migMode: 'enabled' })
    const part = (id: string, gpuInstanceId: number) =>
      gpuInfo(0, {
        id,
        label: `0:${gpuInstanceId}`,
        migMode: null,
        mig: { parentId: card.id, gpuInstanceId, computeInstanceId: 0, profile: '3g.40gb' },
      })
    const infos = [card, part('MIG-a', 1), part('MIG-b', 2)]
    const [whole, ...parts] = infos
    const samples = [
      gpuSample(whole?.id ?? '', { utilizationRatio: null, memoryUsedBytes: 30 * GIB, memoryTotalBytes: 80 * GIB, powerWatts: 300 }),
      ...parts.map(({ id }) =>
        gpuSample(id, { utilizationRatio: 0.5, memoryUsedBytes: 15 * GIB, memoryTotalBytes: 40 * GIB, powerWatts: null }),
      ),
    ]
    const text = frame(worldState({ infos, samples }), { columns: 120, rows: 24 }, { layout: 'rows' })
    expect(text).toContain('util 50%  mem 30.0/80.0 GiB  300 W')
  })

  it('says what a lost card is, in both layouts', () => {
    const lost = worldState({ infos: [gpuInfo(0)], samples: [{ ...bareSample('GPU-0'), state: 'lost', stateReason: 'fell off the bus' }] })
    for (const layout of ['cards', 'rows'] as const)
      expect(frame(lost, { columns: 80, rows: 24 }, { layout })).toContain('LOST: fell off the bus')
  })

  it('says since when a driver does not respond, and how old the figures are', () => {
    const state = worldState({ infos: [gpuInfo(0)], samples: [gpuSample('GPU-0')] })
    const data = state.data({ columns: 80, gpu: null })
    const stuck = {
      ...data,
      now: data.now + 30_000,
      ageMs: 30_000,
      health: data.health.map((source) => ({
        ...source,
        state: 'not_responding' as const,
        since: 1_760_000_000_000,
        message: 'no answer for 5 s',
      })),
      gpus: data.gpus.map((gpu) => ({ ...gpu, view: { ...gpu.view, live: false, ageMs: 30_000 } })),
    }
    const text = render(stuck, FIRST_VIEW, { columns: 80, rows: 24 }, createTheme('dark', 'many', false)).grid.text()
    expect(text).toContain('nvidia driver not responding since 08:53:20')
    expect(text).toContain('last sample 30 s ago')
    expect(text).toContain('age 30 s')
  })

  it('says that the recording which the agent plays is paused or over, not that its figures are old', () => {
    let now = AT
    const state = emptyState(() => now)
    state.accept({ type: 'devices', devices: [gpuInfo(0, { provenance: 'replay' })] })
    state.accept({ type: 'health', health: [healthWith(AT, { source: 'replay', provenance: 'replay' })] })
    const tick = {
      seq: 1,
      at: AT,
      source: 'replay',
      provenance: 'replay',
      gpus: [gpuSample('GPU-0')],
      processes: [],
      host: null,
      events: [],
    } as const
    state.accept({ type: 'tick', tick })
    now += 600_000
    const size = { columns: 100, rows: 24 }
    expect(frame(state, size)).toContain('last sample 10 min ago')
    for (const playing of ['paused', 'ended'] as const) {
      state.accept({ type: 'playback', playback: { state: playing, at: AT, speed: 1, jumps: 0 } })
      const text = frame(state, size)
      expect(text).toMatch(new RegExp(`REPLAY.*${playing.toUpperCase()} `))
      expect(text).not.toMatch(/last sample|\bage /)
    }
    state.linkLost = { since: now, reason: 'connection closed' }
    expect(frame(state, size)).toContain('last sample 10 min ago')
  })

  it('keeps every line within the screen whatever the names are', () => {
    const evil = [
      '\u001b[2J\u001b]0;owned\u0007',
      '日本語のプロセス',
      'é́́́́'.repeat(20),
      '👩‍👩‍👧‍👦🇩🇪',
      '\u202eevil',
      'a'.repeat(500),
      '\t\n\r',
    ]
    const state = worldState({
      infos: [gpuInfo(0, { name: '\u001b[31mred\u001b[0m 漢字' })],
      samples: [gpuSample('GPU-0')],
      processes: evil.map((name, index) => processView(index + 1, 'GPU-0', { command: [name], user: name })),
      findings: [finding('change', { message: `\u001b[5m${evil.join(' ')}` })],
      steps: [trainingStep(1, { run: '\u001b[7m漢字漢字漢字漢字漢字' })],
    })
    for (const [columns, rows] of [
      [40, 12],
      [80, 24],
      [81, 25],
      [200, 60],
      [1, 1],
      [20, 5],
    ] as const) {
      const lines = frame(state, { columns, rows }).split('\n')
      expect(lines.length).toBe(rows)
      for (const line of lines) {
        expect(textWidth(line)).toBeLessThanOrEqual(columns)
        // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
        expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/)
      }
    }
  })

  it('hides panels', () => {
    const text = frame(busy(), { columns: 80, rows: 40 }, { hidden: new Set(['gpus', 'training', 'findings', 'host']) })
    expect(text).toContain('PID')
    expect(text).not.toMatch(/util|Training|Findings|RAM 112/)
  })

  it('shows the tree below the parent', () => {
    expect(frame(busy(), { columns: 80, rows: 40 }, { tree: true })).toMatch(/└─ python train/)
  })
})
