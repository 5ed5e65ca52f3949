import '../style/usage.css'
import type { UsageAnswer } from '../answers.ts'
import { place, setQuery } from '../location.ts'
import { Choices, Empty, Fact, Fault, Panel } from '../parts/parts.tsx'
import { useAnswer } from '../poll.ts'
import { formatPercent } from '../words.ts'
import { DayBars } from './usage/day-bars.tsx'
import { DownloadCsv } from './usage/download.tsx'
import { amount, money } from './usage/figures.ts'
import { UsageTable } from './usage/usage-table.tsx'

const SPANS = [
  { value: '1', label: '24 h' },
  { value: '7', label: '7 d' },
  { value: '30', label: '30 d' },
  { value: '90', label: '90 d' },
  { value: '365', label: '1 y' },
] as const
const GROUPINGS = [
  { value: 'user', label: 'User' },
  { value: 'job', label: 'Job' },
  { value: 'run', label: 'Run' },
  { value: 'gpu', label: 'GPU' },
  { value: 'day', label: 'Day' },
] as const
const REFRESH_MS = 30_000

export function UsagePage() {
  const { days: asked = '30', by: group = 'user', user = '', simulated = null } = place.value.query
  const days = SPANS.find(({ value }) => value === asked)?.value ?? '30'
  const by = GROUPINGS.find(({ value }) => value === group)?.value ?? 'user'
  const query = { by, from: `-${days}d`, user: user === '' ? null : user, simulated }
  const { answer, fault } = useAnswer<UsageAnswer>('/api/v1/usage', query, REFRESH_MS)
  return (
    <>
      <div class="page-head usage-head">
        <h1 class="grow">Usage</h1>
        <Choices label="Time range" options={SPANS} value={days} onChoose={(value) => setQuery({ days: value })} />
        <Choices label="Add up by" options={GROUPINGS} value={by} onChoose={(value) => setQuery({ by: value })} />
        <DownloadCsv query={query} name={`usage-by-${by}`} />
      </div>
      {user !== '' && (
        <p class="small">
          Only use by <strong>{user}</strong>.{' '}
          <button type="button" class="quiet" onClick={() => setQuery({ user: null })}>
            Show all users
          </button>
        </p>
      )}
      {answer?.hasOther && (
        <p class="small">
          {answer.simulated ? 'This is use of simulated GPUs.' : 'There is also use of simulated GPUs, which is not counted here.'}{' '}
          <button type="button" class="quiet" onClick={() => setQuery({ simulated: answer.simulated ? 'no' : 'yes' })}>
            {answer.simulated ? 'Show real ones' : 'Show it'}
          </button>
        </p>
      )}
      <Fault text={fault ?? answer?.fault ?? null} />
      {answer && <Body answer={answer} />}
    </>
  )
}

function Body({ answer }: { readonly answer: UsageAnswer }) {
  if (answer.groups.length === 0)
    return (
      <Panel>
        <Empty title="Nothing was counted in this time">
          gpuwarden counts from its first start on. "gpuwarden usage --from-recording DIR" counts older logs.
        </Empty>
      </Panel>
    )
  return (
    <>
      <Panel title="GPU-hours per day" aside={<span class="small faint">{answer.simulated ? 'SIMULATED · ' : ''}days in UTC</span>}>
        <DayBars days={answer.days} />
      </Panel>
      <Totals answer={answer} />
      <Panel title={`By ${answer.by === 'gpu' ? 'GPU' : answer.by}`}>
        <UsageTable answer={answer} />
        {answer.moreGroups > 0 && <p class="small faint">{answer.moreGroups} more are in the total alone.</p>}
        {answer.costIsEstimate && (
          <p class="small faint">Costs are from list prices: set usage.price_per_hour or usage.prices for your own.</p>
        )}
      </Panel>
    </>
  )
}

function Totals({ answer }: { readonly answer: UsageAnswer }) {
  const { total, free } = answer
  const watched = total.gpuHours + free.gpuHours
  return (
    <Panel>
      <div class="facts">
        <Fact label="Held" title="GPU-hours that somebody held, of all that were watched">
          {amount(total.gpuHours)} h ({formatPercent(watched > 0 ? total.gpuHours / watched : null)})
        </Fact>
        <Fact label="Free">{amount(free.gpuHours)} h</Fact>
        <Fact label="Busy while held">{formatPercent(total.busyRatio)}</Fact>
        {total.smRatio !== null && <Fact label="SM activity">{formatPercent(total.smRatio)}</Fact>}
        <Fact
          label="Idle held"
          title="Memory was held and nothing computed"
          tone={total.idleHours > total.gpuHours / 10 ? 'warning' : 'plain'}
        >
          {amount(total.idleHours)} h
        </Fact>
        <Fact label="Energy">{amount(total.energyKwh)} kWh</Fact>
        <Fact label="Cost">{money(total.cost)}</Fact>
        <Fact label="Throttled" title="Work with clocks held down by heat or power">
          {amount(total.throttledHours)} h
        </Fact>
        <Fact label="Out of memory" title="Lost by runs that ran out of memory, since their last checkpoint">
          {amount(total.lostOomHours)} h
        </Fact>
        <Fact label="Died" title="Lost by runs that died in another way, since their last checkpoint">
          {amount(total.lostDeadHours)} h
        </Fact>
      </div>
    </Panel>
  )
}
