import type { DevicePicture } from '../../../src/core/memory/snapshot-picture.ts'

/** `event 13,926, 0.156 s after the first`, and whether it is the peak. */
export function momentText({ peak, bands, events }: DevicePicture, index: number): string {
  if (events === 0) return 'when the file was written'
  const name = index === peak.index ? 'the peak: ' : index === events - 1 ? 'the end: ' : ''
  if (index < 0) return `${name}before the first event`
  const { timesUs, from, to } = bands.line.columns
  if (timesUs === null) return `${name}event ${index.toLocaleString('en-US')}`
  const column = Math.min(timesUs.length - 1, Math.floor(((index - from) * timesUs.length) / (to - from)))
  let time = 0
  for (let i = 0; i <= column; i++) time += timesUs[i] as number
  return `${name}event ${index.toLocaleString('en-US')}, about ${secondsText(time)} after the first`
}

/** `0.156 s` */
export function secondsText(microseconds: number): string {
  const seconds = microseconds / 1e6
  return `${seconds < 100 ? seconds.toFixed(3) : Math.round(seconds)} s`
}
