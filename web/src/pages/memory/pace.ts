import { formatBytes } from '../../words.ts'

/** How fast memory grows: always by the minute, so that two paces can be compared. */
export function pace(bytesPerSecond: number): string {
  return `${formatBytes(bytesPerSecond * 60)}/min`
}
