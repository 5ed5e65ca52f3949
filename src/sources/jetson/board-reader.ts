/** The readings of a Jetson's GPU. They are a handful of small files, so each is opened anew. */
import { join } from 'node:path'
import type { GpuReadings, Reading } from '../../core/model.ts'
import { NO_READINGS } from '../../core/record.ts'
import { parseMeminfo } from '../host-memory.ts'
import { tryReadSmallFile } from '../small-file.ts'
import type { Board, Rail } from './board.ts'

const MILLI = 1e-3
const MICRO = 1e-6
const FULL_LOAD = 1000
const FULL_FAN = 255

/** null when neither clock, load nor temperature can be read: the GPU is gone. */
export function readBoard({ clock, load, temperature, fan, gpuRail, inputRail }: Board, root: string): GpuReadings | null {
  const hertz = numberIn(clock)
  const busy = numberIn(load)
  const celsius = scaledIn(temperature, MILLI)
  if (hertz === null && busy === null && celsius === null) return null
  const memory = hostMemory(root)
  return {
    ...NO_READINGS,
    utilizationRatio: share(busy, FULL_LOAD),
    memoryUsedBytes: memory?.usedBytes ?? null,
    memoryTotalBytes: memory?.totalBytes ?? null,
    memoryFreeBytes: memory?.freeBytes ?? null,
    temperatureCelsius: celsius,
    powerWatts: watts(gpuRail),
    modulePowerWatts: watts(inputRail),
    fanRatio: share(numberIn(fan), FULL_FAN),
    graphicsClockHertz: hertz,
    smClockHertz: hertz,
  }
}

export function hostMemory(root: string): ReturnType<typeof parseMeminfo> {
  return parseMeminfo(tryReadSmallFile(join(root, 'proc/meminfo')) ?? '')
}

export function numberIn(path: string | null): Reading {
  const value = path === null ? Number.NaN : Number.parseInt(tryReadSmallFile(path) ?? '', 10)
  return Number.isSafeInteger(value) ? value : null
}

export function celsiusIn(path: string | null): Reading {
  return scaledIn(path, MILLI)
}

function scaledIn(path: string | null, factor: number): Reading {
  const value = numberIn(path)
  return value === null ? null : Math.round(value * factor * 1000) / 1000
}

function watts(rail: Rail | null): Reading {
  if (rail === null) return null
  if (rail.microwatts !== null) return scaledIn(rail.microwatts, MICRO)
  const millivolts = numberIn(rail.millivolts)
  const milliamperes = numberIn(rail.milliamperes)
  return millivolts === null || milliamperes === null ? null : Math.round(millivolts * milliamperes * MILLI) / 1000
}

function share(value: Reading, full: number): Reading {
  return value === null ? null : Math.min(Math.max(value / full, 0), 1)
}
