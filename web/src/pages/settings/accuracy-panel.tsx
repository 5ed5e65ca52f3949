/** How often which detector's forecast was right on this machine. */
import type { AccuracyAnswer } from '../../answers.ts'
import { Empty, Fault, Panel, ScrollBox } from '../../parts/parts.tsx'
import { useAnswer } from '../../poll.ts'
import { formatDuration, formatPercent, NOT_AVAILABLE } from '../../words.ts'

const REFRESH_MS = 60_000

export function AccuracyPanel() {
  const { answer, fault } = useAnswer<AccuracyAnswer>('/api/v1/accuracy', {}, REFRESH_MS)
  return (
    <Panel title="Forecasts" id="accuracy" aside={answer && <span class="small faint">last {answer.days} days</span>}>
      <Fault text={fault} />
      {answer && !answer.isLogged ? (
        <Empty title="Not known">The agent keeps no log, so its forecasts cannot be judged.</Empty>
      ) : answer && answer.rows.length === 0 ? (
        <Empty title="Nothing was forecast">{deaths(answer)}</Empty>
      ) : (
        answer && <Table answer={answer} />
      )}
    </Panel>
  )
}

function Table({ answer }: { readonly answer: AccuracyAnswer }) {
  return (
    <>
      <ScrollBox label="How often forecasts were right">
        <table class="accuracy">
          <thead>
            <tr>
              <th>Detector</th>
              <th class="number">Forecasts</th>
              <th class="number">Came true</th>
              <th class="number">Did not</th>
              <th class="number">Right</th>
              <th class="number" title="Median time between the forecast and what it forecast">
                Lead
              </th>
              <th class="number" title="Median difference between the forecast time and the real one">
                Error
              </th>
            </tr>
          </thead>
          <tbody>
            {answer.rows.map((row) => (
              <tr key={row.detector}>
                <td>{row.detector}</td>
                <td class="number" data-label="Forecasts">
                  {row.forecasts}
                </td>
                <td class="number" data-label="Came true">
                  {row.cameTrue}
                </td>
                <td class="number" data-label="Did not">
                  {row.didNotHappen}
                </td>
                <td class="number" data-label="Right">
                  {rightShare(row)}
                </td>
                <td class="number" data-label="Lead">
                  {secondsText(row.medianLeadSeconds)}
                </td>
                <td class="number" data-label="Error">
                  {secondsText(row.medianErrorSeconds)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
      <p class="small faint">
        {deaths(answer)} The same in a terminal: <code>gpuwarden accuracy</code>
      </p>
    </>
  )
}

function rightShare({ cameTrue, didNotHappen }: AccuracyAnswer['rows'][number]): string {
  const judged = cameTrue + didNotHappen
  return judged === 0 ? NOT_AVAILABLE : formatPercent(cameTrue / judged)
}

function secondsText(seconds: number | null): string {
  return seconds === null ? NOT_AVAILABLE : formatDuration(seconds * 1000)
}

function deaths({ outOfMemory, withoutWarning }: AccuracyAnswer): string {
  if (outOfMemory === 0) return 'No run ran out of memory.'
  return `${outOfMemory} ${outOfMemory === 1 ? 'run' : 'runs'} ran out of memory, ${withoutWarning} without a warning.`
}
