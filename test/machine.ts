/** A pretended machine: its PCI bus, its device files and its driver, for the real program. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { GpuView } from '../src/core/kinds.ts'
import type { SourceHealth } from '../src/core/model.ts'
import { buildFakeNvml, type FakeNvmlValues, fakeNvmlScript } from './fake-nvml/index.ts'
import { RunningAgent } from './program.ts'

export interface PretendCard {
  readonly vendor: string
  /** Class of a 3D controller unless something else is said. */
  readonly class?: string
  readonly device?: string
  readonly driver?: string
}

export const NVIDIA: PretendCard = { vendor: '0x10de', class: '0x030200', device: '0x2330' }
export const AMD: PretendCard = { vendor: '0x1002', class: '0x030000', device: '0x744c' }

export class Machine {
  readonly root = mkdtempSync(join(tmpdir(), 'gpuwarden-machine-'))

  constructor(cards: Readonly<Record<string, PretendCard>> = {}) {
    // The host is the real one.
    symlinkSync('/proc', join(this.root, 'proc'))
    mkdirSync(join(this.root, 'dev'))
    for (const [address, card] of Object.entries(cards)) this.plug(address, card)
    onTestFinished(() => rmSync(this.root, { recursive: true, force: true }))
  }

  get env(): NodeJS.ProcessEnv {
    return { GPUWARDEN_ROOT: this.root }
  }

  plug(address: string, { vendor, class: pciClass = '0x030200', device = '0x0001', driver }: PretendCard): void {
    const folder = `sys/bus/pci/devices/${address}`
    this.write(`${folder}/vendor`, `${vendor}\n`)
    this.write(`${folder}/class`, `${pciClass}\n`)
    this.write(`${folder}/device`, `${device}\n`)
    this.bind(address, driver ?? null)
  }

  unplug(address: string): void {
    rmSync(join(this.root, 'sys/bus/pci/devices', address), { recursive: true })
  }

  bind(address: string, driver: string | null): void {
    const link = join(this.root, 'sys/bus/pci/devices', address, 'driver')
    rmSync(link, { force: true })
    if (driver !== null) symlinkSync(`../../../../bus/pci/drivers/${driver}`, link)
  }

  write(path: string, content: string): void {
    const whole = join(this.root, path)
    mkdirSync(dirname(whole), { recursive: true })
    writeFileSync(whole, content)
  }
}

export interface Health {
  readonly status: string
  readonly sources: readonly SourceHealth[]
}

/** The environment of a program whose NVIDIA driver does as the script says. */
export function driver(values: FakeNvmlValues): NodeJS.ProcessEnv {
  const script = fakeNvmlScript(values)
  onTestFinished(() => script.remove())
  return { GPUWARDEN_NVML: buildFakeNvml(), ...script.env }
}

/** Ends with the test. */
export async function monitor(env: NodeJS.ProcessEnv, args: readonly string[] = []): Promise<RunningAgent> {
  const agent = await RunningAgent.start(['--interval', '0.2', ...args], env)
  onTestFinished(async () => void (await agent.stop('SIGKILL')))
  return agent
}

export async function gpusOf(agent: RunningAgent): Promise<GpuView[]> {
  return (await agent.get<{ gpus: GpuView[] }>('/api/v1/gpus')).gpus
}
