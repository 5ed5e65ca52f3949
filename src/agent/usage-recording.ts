/** Counts the use in a recording: logs of before usage was counted, or of another machine. */
import type { Recording } from '../core/recording/recording.ts'
import type { RunRecord } from '../training/run-record.ts'
import { Book } from '../usage/book.ts'
import { Counter } from '../usage/counter.ts'
import type { UsageRow } from '../usage/row.ts'
import { longestGapMs } from '../usage/usage.ts'
import { playRecording } from './detect-recording.ts'

export async function countRecording(recording: Recording, runs: readonly RunRecord[], intervalMs: number): Promise<readonly UsageRow[]> {
  const book = new Book()
  const counter = new Counter(book, longestGapMs(intervalMs))
  await playRecording(recording, { until: null, durationMs: null, runs }, (event) => counter.accept(event))
  counter.settle()
  return [...book.hours.values()].flatMap(({ rows }) => [...rows.values()])
}
