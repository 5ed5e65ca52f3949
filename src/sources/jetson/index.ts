/** The GPU inside a Jetson (Nano, Xavier, Orin, Thor) through the kernel's files; NVML does not know it, or knows little of it. */
import type { GpuInfo, Sample } from '../../core/model.ts'
import { NO_FACTS, NO_READINGS } from '../../core/record.ts'
import type { Source, SourceEnv, SourceKind, SourceTick } from '../../core/source-contract.ts'
import { listDriverCards } from '../nvidia/driver-cards.ts'
import { type Board, findBoard, INTEGRATED } from './board.ts'
import { celsiusIn, hostMemory, numberIn, readBoard } from './board-reader.ts'

const GONE = 'none of its files can be read'

const ARCHITECTURES: Readonly<Record<string, string>> = {
  tegra210: 'Maxwell',
  tegra186: 'Pascal',
  tegra194: 'Volta',
  tegra234: 'Ampere',
  tegra264: 'Blackwell',
}

export const jetson: SourceKind = {
  name: 'jetson',
  async open(env) {
    const board = findBoard(env.root)
    return board === null || isDrivenByNvidia(env.root) ? null : new JetsonSource(env, board)
  },
}

/** From Thor on the GPU has the driver of the large cards: NVML then lists it, with its processes. */
function isDrivenByNvidia(root: string): boolean {
  return listDriverCards(root).some(({ name }) => name !== null && INTEGRATED.test(name))
}

class JetsonSource implements Source {
  readonly provenance = 'live'
  readonly #board: Board
  readonly #root: string
  readonly #devices: readonly [GpuInfo]
  #isLost = false

  constructor({ root }: SourceEnv, board: Board) {
    this.#board = board
    this.#root = root
    this.#devices = [describe(board, root)]
  }

  devices(): readonly GpuInfo[] {
    return this.#devices
  }

  read({ at }: SourceTick): readonly Sample[] {
    const [{ id }] = this.#devices
    const readings = readBoard(this.#board, this.#root)
    const isLost = readings === null
    const samples: Sample[] = []
    if (isLost !== this.#isLost)
      samples.push({
        ...{ kind: 'event', at, gpu: id, event: isLost ? 'lost' : 'recovered', code: null, origin: 'sysfs' },
        message: isLost ? GONE : 'the GPU can be read again',
      })
    this.#isLost = isLost
    const state = isLost ? { state: 'lost' as const, stateReason: GONE } : { state: 'ok' as const, stateReason: null }
    samples.push({ kind: 'gpu', at, gpu: id, ...state, slowAt: at, processes: null, ...(readings ?? NO_READINGS) })
    return samples
  }

  /** Nothing stays open between two readings. */
  close(): void {
    this.#isLost = false
  }
}

function describe(board: Board, root: string): GpuInfo {
  const { model, serial, chip, release, gpu, gpuRail } = board
  return {
    ...NO_FACTS,
    id: serial === null ? chip : `${chip}-${serial}`,
    index: 0,
    label: '0',
    vendor: 'jetson',
    provenance: 'live',
    name: model ?? `NVIDIA ${chip}`,
    serial,
    driverVersion: release,
    architecture: ARCHITECTURES[chip] ?? null,
    memoryTotalBytes: hostMemory(root)?.totalBytes ?? null,
    smClockMaxHertz: numberIn(board.clockMax),
    temperatureSlowdownCelsius: celsiusIn(board.temperatureSlowdown),
    temperatureShutdownCelsius: celsiusIn(board.temperatureCritical),
    unifiedMemory: true,
    unavailable: {
      processes: 'the driver of a Jetson does not say who uses its GPU',
      memoryReservedBytes: 'this GPU shares the memory of the host',
      pciBusId: `it is a part of the chip (${gpu})`,
      ...(board.load === null ? { utilizationRatio: 'this kernel does not show the load of the GPU' } : {}),
      ...(gpuRail === null ? { powerWatts: 'this board has no power monitor on the rail of the GPU' } : {}),
      ...(board.temperature === null ? { temperatureCelsius: 'this kernel shows no temperature of the GPU' } : {}),
    },
  }
}
