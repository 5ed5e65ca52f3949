/** From base units to the units that other people's metric names promise. */
import type { Reading } from '../core/model.ts'
import { toColumn } from '../core/record.ts'

export function percent(ratio: Reading): Reading {
  return ratio === null ? null : toColumn(ratio, 'percent')
}

export function mebibytes(bytes: Reading): Reading {
  return bytes === null ? null : toColumn(bytes, 'mebibytes')
}

export function megahertz(hertz: Reading): Reading {
  return hertz === null ? null : toColumn(hertz, 'megahertz')
}

export function millijoules(joules: Reading): Reading {
  return joules === null ? null : Math.round(joules * 1000)
}

export function nanoseconds(seconds: Reading): Reading {
  return seconds === null ? null : Math.round(seconds * 1e9)
}

/** Megabytes of a million, as DCGM counts bandwidth. */
export function megabytes(bytes: Reading): Reading {
  return bytes === null ? null : bytes / 1e6
}

export function seconds(milliseconds: Reading): Reading {
  return milliseconds === null ? null : Math.round(milliseconds) / 1000
}
