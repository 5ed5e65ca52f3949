/** The lines of a card below utilization and memory: what its parts do, its links, its memory errors. */
import { formatPercent, NOT_AVAILABLE } from '../core/format.ts'
import type { GpuInfo, GpuSample, Reading } from '../core/model.ts'
import { BOLD, TONE } from './grid.ts'
import type { Span } from './painter.ts'
import { padStart } from './text-width.ts'
import { shortBytes } from './words.ts'

export function activity(sample: GpuSample): Span[] {
  const parts: [string, Reading][] = [
    ['SM', sample.smActiveRatio],
    ['occ', sample.smOccupancyRatio],
    ['tensor', sample.tensorActiveRatio],
    ['DRAM', sample.dramActiveRatio],
    ['enc', sample.encoderRatio],
    ['dec', sample.decoderRatio],
  ]
  const known = parts.filter(([name, ratio]) => ratio !== null && (ratio > 0 || !/enc|dec/.test(name)))
  if (!known.some(([name]) => /SM|tensor|DRAM/.test(name))) return [{ text: `activity of its parts ${NOT_AVAILABLE}`, style: TONE.faint }]
  return [...known.map(([name, ratio]) => ({ text: `${name} ${padStart(formatPercent(ratio), 4)}`, style: TONE.muted }))]
}

/** On a line of its own, where it is said when neither is known. */
export function linksLine(sample: GpuSample, info: GpuInfo): Span[] {
  const known = links(sample, info).filter((span) => span.text !== '')
  return known.length > 0 ? known : [{ text: `traffic of its links ${NOT_AVAILABLE}`, style: TONE.faint }]
}

export function links(sample: GpuSample, info: GpuInfo): Span[] {
  const { pcieGeneration: generation, pcieWidth: width } = sample
  // An idle card lowers the generation to save power; lanes that are missing are a bad contact.
  const isNarrow = width !== null && info.pcieWidthMax !== null && width < info.pcieWidthMax
  const link = generation === null || width === null ? '' : ` ${generation}x${width}${isNarrow ? ` of x${info.pcieWidthMax}` : ''}`
  const rate = (received: Reading, sent: Reading) =>
    received === null && sent === null ? '' : ` ↓${shortBytes(received)} ↑${shortBytes(sent)}/s`
  const pcie = link + rate(sample.pcieRxBytesPerSecond, sample.pcieTxBytesPerSecond)
  const xgmi = rate(sample.xgmiRxBytesPerSecond, sample.xgmiTxBytesPerSecond)
  const nvlink = rate(sample.nvlinkRxBytesPerSecond, sample.nvlinkTxBytesPerSecond)
  return [
    { text: pcie === '' ? '' : `PCIe${pcie}`, style: isNarrow ? TONE.warning : TONE.muted },
    { text: xgmi === '' ? '' : `XGMI${xgmi}`, style: TONE.muted },
    { text: nvlink === '' ? '' : `NVLink${nvlink}`, style: TONE.muted },
  ]
}

export function memoryErrors(sample: GpuSample): Span[] {
  const { eccUncorrectedVolatileCount: uncorrected, eccCorrectedVolatileCount: corrected } = sample
  return [
    uncorrected !== null && uncorrected > 0
      ? { text: `ECC ${uncorrected} uncorrected`, style: TONE.critical | BOLD }
      : { text: `ECC ${uncorrected ?? NOT_AVAILABLE}`, style: TONE.muted },
    { text: corrected === null || corrected === 0 ? '' : `${corrected} corrected`, style: TONE.warning },
    { text: sample.remapFailure === 1 ? 'row remap FAILED' : '', style: TONE.critical | BOLD },
    { text: sample.remapPending === 1 ? 'row remap pending: reset' : '', style: TONE.warning },
  ]
}
