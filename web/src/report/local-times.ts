import { timeText } from '../../../src/core/time-span.ts'
import { zoneName } from '../words.ts'

/** Times in the text of a report are UTC until the script shows them in the reader's time zone. */
export function showLocalTimes(at: number): void {
  for (const time of document.querySelectorAll<HTMLElement>('time[data-from]'))
    time.textContent = timeText(Number(time.dataset.from), time.dataset.to === undefined ? null : Number(time.dataset.to), 'local')
  const zone = document.getElementById('zone')
  if (zone) zone.textContent = `Times are in your time zone, ${zoneName(at)}.`
}
