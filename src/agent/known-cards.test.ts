import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Log } from '../core/kinds.ts'
import type { GpuEvent, GpuInfo, GpuSample } from '../core/model.ts'
import { NO_FACTS, NO_READINGS } from '../core/record.ts'
import { KnownCards } from './known-cards.ts'

function gpu(id: string, index: number, parts: Partial<GpuInfo> = {}): GpuInfo {
  return { ...NO_FACTS, id, index, label: String(index), vendor: 'nvidia', provenance: 'live', ...parts }
}

const bus = (index: number) => `00000000:1${index}:00.0`
const card = (index: number, parts: Partial<GpuInfo> = {}) =>
  gpu(`GPU-${index}`, index, { pciBusId: bus(index), name: 'H200', minor: index, ...parts })
const sampleOf = (id: string): GpuSample => ({
  ...{ kind: 'gpu', at: 1, gpu: id, state: 'lost', stateReason: null, slowAt: null, processes: null },
  ...NO_READINGS,
})
const eventOf = (id: string | null): GpuEvent => ({
  ...{ kind: 'event', at: 1, gpu: id, event: 'lost', code: null, message: '', origin: 'nvml' },
})
const newFile = () => join(mkdtempSync(join(tmpdir(), 'gpuwarden-cards-')), 'logs', 'gpus.json')

function open(file: string | null) {
  const logged: string[] = []
  const say = (_fields: object, message: string) => void logged.push(message)
  const log: Log = { debug: say, info: say, warn: say, error: say, child: () => log }
  return { cards: new KnownCards({ file, log }), logged }
}

async function learned(file: string, devices: readonly GpuInfo[]): Promise<void> {
  const { cards } = open(file)
  cards.devices('nvidia', devices)
  await cards.written()
}

describe('known cards', () => {
  it('leave everything as it is where nothing has to be renamed', () => {
    const { cards } = open(null)
    const devices = [card(0), card(1)]
    const samples = [sampleOf('GPU-0')]
    expect(cards.devices('nvidia', devices)).toBe(devices)
    expect(cards.samples('nvidia', samples)).toBe(samples)
    expect(cards.samples('amd', samples)).toBe(samples)
  })

  it.each([
    ['number', 'nvidia-1', null],
    ['address', bus(1), bus(1)],
  ])('know a lost card by its %s after a restart, in devices, samples and events', async (_by, id, pciBusId) => {
    const file = newFile()
    await learned(file, [card(0), card(1)])
    const { cards, logged } = open(file)
    const lost = gpu(id, 1, { pciBusId, unavailable: { name: 'GPU is lost', serial: 'too' } })
    expect(cards.devices('nvidia', [card(0), lost])).toEqual([
      card(0),
      { ...lost, id: 'GPU-1', pciBusId: bus(1), minor: 1, name: 'H200', unavailable: { serial: 'too' } },
    ])
    expect(cards.samples('nvidia', [sampleOf('GPU-0'), sampleOf(id), eventOf(id), eventOf(null)])).toEqual([
      sampleOf('GPU-0'),
      sampleOf('GPU-1'),
      eventOf('GPU-1'),
      eventOf(null),
    ])
    expect(cards.devices('nvidia', [card(0), card(1)])).toEqual([card(0), card(1)])
    expect(cards.samples('nvidia', [sampleOf('GPU-1')])).toEqual([sampleOf('GPU-1')])
    expect(logged).toEqual([])
  })

  it('do not give a name that another card answers to: the driver may have renumbered them', () => {
    const { cards } = open(null)
    cards.devices('nvidia', [card(0), card(1)])
    const [, second] = cards.devices('nvidia', [card(1, { index: 0 }), gpu('nvidia-1', 1)])
    expect(second?.id).toBe('nvidia-1')
  })

  it('do not mix up vendors, simulated cards or instances', () => {
    const { cards } = open(null)
    cards.devices('nvidia', [card(0), card(1, { provenance: 'simulated' })])
    const strangers = [gpu('amd-0', 0, { vendor: 'amd' }), gpu('nvidia-1', 1), gpu('nvidia-0', 0, { provenance: 'simulated' })]
    expect(cards.devices('other', strangers)).toBe(strangers)
  })

  it('forget a card when another is in its slot', async () => {
    const file = newFile()
    const { cards } = open(file)
    cards.devices('nvidia', [card(0)])
    cards.devices('nvidia', [card(0, { id: 'GPU-new' })])
    await cards.written()
    expect(JSON.parse(readFileSync(file, 'utf8')).cards).toMatchObject([{ id: 'GPU-new', pciBusId: bus(0) }])
    expect(open(file).cards.devices('nvidia', [gpu('nvidia-0', 0)])).toMatchObject([{ id: 'GPU-new' }])
  })

  it('begin anew when their file is damaged or cannot be written, and say so once', async () => {
    const file = newFile()
    await learned(file, [card(0)])
    writeFileSync(file, '{"version":1,"cards":[{"id":')
    const damaged = open(file)
    expect(damaged.logged).toEqual(['the known cards cannot be read; they are learned again'])
    damaged.cards.devices('nvidia', [card(0)])
    await damaged.cards.written()
    expect(open(file).logged).toEqual([])
    const blocked = open(join(file, 'below-a-file'))
    for (const index of [1, 2]) blocked.cards.devices('nvidia', [card(index)])
    await blocked.cards.written()
    expect(blocked.logged.filter((line) => line.includes('cannot be saved'))).toHaveLength(1)
    expect(existsSync(`${file}.tmp`)).toBe(false)
  })
})
