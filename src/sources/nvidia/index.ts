import { DriverFault, type Source, type SourceEnv, type SourceKind } from '../../core/source-contract.ts'
import { AsleepSource } from './asleep.ts'
import { CODE, initFault } from './codes.ts'
import { explicitLibrary, initialize, type Nvml, openLibrary } from './library.ts'
import { listCards, type PciCard } from './pci-cards.ts'
import { NvidiaSource } from './source.ts'

export const nvidia: SourceKind = {
  name: 'nvidia',
  async open(env) {
    const cards = listCards(env.root)
    const closeCards = () => {
      for (const card of cards) card.close()
    }
    try {
      const nvml = await openLibrary(env, cards.length)
      const source = nvml === null ? null : openSource(env, nvml, cards)
      if (source === null) closeCards()
      return source
    } catch (fault) {
      closeCards()
      throw fault
    }
  },
}

function openSource(env: SourceEnv, nvml: Nvml, cards: readonly PciCard[]): Source | null {
  const mayWake = env.options.wake === true
  if (!mayWake && cards.length > 0 && cards.every((card) => card.suspended()))
    return new AsleepSource(cards, () => startSource(env, nvml, cards))
  return startSource(env, nvml, cards)
}

function startSource(env: SourceEnv, nvml: Nvml, cards: readonly PciCard[]): Source | null {
  // A card, or a library that somebody named, has to work; without either there is nothing to watch.
  const mustWork = cards.length > 0 || explicitLibrary(env) !== null
  if (!initialize(nvml, env.root, mustWork)) return null
  const count = Buffer.alloc(4)
  const code = nvml.functions.nvmlDeviceGetCount_v2?.(count) ?? CODE.functionNotFound
  const gpus = count.readUInt32LE(0)
  if (code === CODE.ok && gpus > 0) {
    const source = new NvidiaSource(env, nvml, gpus, cards)
    if (source.devices().length > 0) return source
    source.close()
    return null
  }
  nvml.functions.nvmlShutdown?.()
  if (code !== CODE.ok) throw initFault(code, nvml.path)
  // Where the bus shows cards, it also shows why they are not listed.
  if (!mustWork || cards.length > 0) return null
  throw new DriverFault('no_gpu', `NVIDIA: ${nvml.path} lists no GPU: correct GPUWARDEN_NVML or nvml, or remove it to search the system`)
}
