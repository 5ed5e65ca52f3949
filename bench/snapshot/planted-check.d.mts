import type { PlantedTruth } from './planted.mjs'
export function plantedFaults(device: unknown, truth: PlantedTruth): string[]
