/** The NVLinks of a GPU, and its links to the CPU (C2C): each with its state and its error counters. */
import type { GpuInfo, GpuLink, Reading } from '../../core/model.ts'
import { CODE, isFinal } from './codes.ts'
import type { Device, Readings } from './device.ts'
import { askFields, type FieldAnswer } from './fields.ts'
import { readUint64 } from './layouts.ts'

type LinkFigure = Exclude<keyof GpuLink, 'link' | 'state'>

interface LinkKind {
  /** Fields of NVML: how many links there are, the state of one, its figures. Of two fields for one figure the first that answers counts. */
  readonly count: number
  readonly state: number
  readonly figures: readonly (readonly [LinkFigure, number])[]
}

const NVLINK: LinkKind = {
  count: 91,
  state: 165,
  figures: [
    ['version', 166],
    ['bytesPerSecondMax', 164],
    ['replayCount', 161],
    ['recoveryCount', 162],
    ['recoveryCount', 215],
    ['crcErrorCount', 163],
    ['effectiveErrorCount', 219],
    ['symbolErrorCount', 221],
  ],
}
const C2C: LinkKind = {
  count: 170,
  state: 171,
  figures: [
    ['bytesPerSecondMax', 172],
    ['crcErrorCount', 231],
    ['replayCount', 232],
  ],
}

/** More than any GPU has: a count above it is not believed. */
const MAX_LINKS = 72
/** Few enough for one call, many enough to make few calls. */
const LINKS_PER_CALL = 6
const STATES = ['inactive', 'active', 'asleep'] as const
/** NVML's numbers for them, from 1 on. */
const VERSIONS: readonly Reading[] = [null, 1, 2, 2.2, 3, 3.1, 4, 5, 6]
const BYTES_PER_MEGABYTE = 1e6

const NO_LINK: Omit<GpuLink, 'link'> = {
  state: null,
  version: null,
  bytesPerSecondMax: null,
  replayCount: null,
  recoveryCount: null,
  crcErrorCount: null,
  effectiveErrorCount: null,
  symbolErrorCount: null,
}

/** Asks for every link in as few calls as can be; what no link answers is not asked again. */
function linksReader(device: Device, kind: LinkKind, stateOf: (link: number) => Reading): () => readonly GpuLink[] {
  let count: number | null = null
  let stateId: number | null = kind.state
  let figures = kind.figures

  function countLinks(): number {
    const value = askFields(device, [{ id: kind.count, scope: 0 }])?.[0]?.value ?? null
    if (value !== null) return Math.min(value, MAX_LINKS)
    let links = 0
    while (links < MAX_LINKS && stateOf(links) !== null) links++
    return links
  }

  function readSome(from: number, to: number, refused: Map<number, boolean>): GpuLink[] {
    const ids = [...(stateId === null ? [] : [stateId]), ...figures.map(([, id]) => id)]
    const numbers = Array.from({ length: to - from }, (_, i) => from + i)
    const answers = askFields(
      device,
      numbers.flatMap((scope) => ids.map((id) => ({ id, scope }))),
    )
    return numbers.map((link, position) => {
      const own = answers?.slice(position * ids.length, (position + 1) * ids.length) ?? []
      for (const [i, id] of ids.entries()) {
        const isRefused = own[i] !== undefined && isFinal(own[i].code)
        refused.set(id, isRefused && (refused.get(id) ?? true))
      }
      return linkOf(link, own)
    })
  }

  function linkOf(link: number, own: readonly FieldAnswer[]): GpuLink {
    const first = stateId === null ? 0 : 1
    const told = stateId === null ? null : (own[0]?.value ?? null)
    const state = told ?? stateOf(link)
    const made = { link, ...NO_LINK, state: state === null ? null : (STATES[state] ?? null) }
    for (const [i, [figure]] of figures.entries()) made[figure] ??= inUnits(figure, own[first + i]?.value ?? null)
    return made
  }

  return () => {
    count ??= countLinks()
    const refused = new Map<number, boolean>()
    const links: GpuLink[] = []
    for (let from = 0; from < count; from += LINKS_PER_CALL) links.push(...readSome(from, Math.min(from + LINKS_PER_CALL, count), refused))
    figures = figures.filter(([, id]) => !refused.get(id))
    if (stateId !== null && refused.get(stateId)) stateId = null
    return links
  }
}

function inUnits(figure: LinkFigure, value: Reading): Reading {
  if (value === null || value < 0) return null
  if (figure === 'version') return VERSIONS[value] ?? null
  return figure === 'bytesPerSecondMax' ? value * BYTES_PER_MEGABYTE : value
}

const scratch = Buffer.alloc(8)
/** NVML's numbers of its error counters, for drivers without the fields. */
const COUNTERS = { replayCount: 0, recoveryCount: 1, crcErrorCount: 3 } as const

export type LinkFacts = Pick<GpuInfo, 'nvlinks' | 'c2cLinks'>

export function allLinksReader(device: Device): (out: Readings) => LinkFacts {
  const { nvmlDeviceGetNvLinkState: stateCall, nvmlDeviceGetNvLinkErrorCounter: errorCall } = device.nvml.functions
  const stateOf = (link: number) => (stateCall?.(device.handle, link, scratch) === CODE.ok ? scratch.readUInt32LE(0) : null)
  const errorsOf = (link: number, counter: number) =>
    errorCall?.(device.handle, link, counter, scratch) === CODE.ok ? readUint64(scratch, 0) : null
  const readNvlinks = linksReader(device, NVLINK, stateOf)
  const readC2cLinks = linksReader(device, C2C, () => null)
  let lacksCounters = false

  const withCounters = (link: GpuLink): GpuLink => {
    const counted = Object.entries(COUNTERS).map(([figure, counter]) => [figure, errorsOf(link.link, counter)] as const)
    return { ...link, ...Object.fromEntries(counted) }
  }

  return (out) => {
    let nvlinks = readNvlinks()
    const isCounted = nvlinks.some(
      ({ replayCount, recoveryCount, crcErrorCount }) => (replayCount ?? recoveryCount ?? crcErrorCount) !== null,
    )
    if (!isCounted && !lacksCounters) {
      nvlinks = nvlinks.map(withCounters)
      lacksCounters = nvlinks.every(({ replayCount }) => replayCount === null)
    }
    const has = nvlinks.length > 0
    if (!has) for (const field of FIELDS) device.explain(field, 'this GPU has no NVLink, or the driver does not show it')
    out.nvlinkActiveCount = has ? nvlinks.filter(({ state }) => state === 'active' || state === 'asleep').length : null
    out.nvlinkReplayCount = sum(nvlinks, 'replayCount')
    out.nvlinkRecoveryCount = sum(nvlinks, 'recoveryCount')
    out.nvlinkCrcErrorCount = sum(nvlinks, 'crcErrorCount')
    return { nvlinks, c2cLinks: readC2cLinks() }
  }
}

const FIELDS = ['nvlinkActiveCount', 'nvlinkReplayCount', 'nvlinkRecoveryCount', 'nvlinkCrcErrorCount']

/** Of the links that tell it; null when none does. */
function sum(links: readonly GpuLink[], figure: LinkFigure): Reading {
  let total: Reading = null
  for (const link of links) if (link[figure] !== null) total = (total ?? 0) + link[figure]
  return total
}
