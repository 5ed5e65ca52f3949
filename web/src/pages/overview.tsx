import '../style/overview.css'
import { findings, gpus, health, isReplay, link } from '../live/store.ts'
import { place, setQuery } from '../location.ts'
import { FindingItem } from '../parts/finding-item.tsx'
import { Choices, Empty, Panel } from '../parts/parts.tsx'
import { GpuCard } from './overview/gpu-card.tsx'
import { GpuTable } from './overview/gpu-table.tsx'
import { RecordedFindings } from './overview/recorded-findings.tsx'
import { RunningTrainings } from './overview/running-trainings.tsx'
import { TotalsBar } from './overview/totals-bar.tsx'

/** More than these are a table unless the person wants cards. */
const MOST_CARDS = 8
const MOST_FINDINGS = 8
/** How so many cards use the room that there is for them. */
const ROOM: Readonly<Record<number, string>> = { 1: 'alone', 2: 'two' }

type View = 'cards' | 'table'

export function OverviewPage() {
  return (
    <>
      <h1 class="visually-hidden">Overview</h1>
      <TotalsBar />
      <div class={`overview with-${viewOf(gpus.value.length)}`}>
        <Gpus />
        <div class="overview-side">
          <ActiveFindings />
          <RunningTrainings />
        </div>
      </div>
    </>
  )
}

function viewOf(count: number): View {
  const { view } = place.value.query
  return view === 'cards' || view === 'table' ? view : count > MOST_CARDS ? 'table' : 'cards'
}

function Gpus() {
  const cells = gpus.value
  const view = viewOf(cells.length)
  return (
    <div class="overview-gpus">
      <div class="page-head">
        <h2 class="grow">GPUs</h2>
        {cells.length > 0 && (
          <Choices<View>
            label="How GPUs are shown"
            options={[
              { value: 'cards', label: 'Cards' },
              { value: 'table', label: 'Table' },
            ]}
            value={view}
            onChoose={(chosen) => setQuery({ view: chosen })}
          />
        )}
      </div>
      {cells.length === 0 ? (
        <NoGpus />
      ) : view === 'table' ? (
        <GpuTable cells={cells} />
      ) : (
        <div class={`grid cards ${ROOM[cells.length] ?? ''}`}>
          {cells.map((cell) => (
            <GpuCard key={cell.id} cell={cell} isAlone={cells.length === 1} />
          ))}
        </div>
      )}
    </div>
  )
}

function NoGpus() {
  const { state } = link.value
  if (state !== 'live')
    return (
      <Panel>
        <Empty title={state === 'lost' ? 'The agent does not answer' : 'Connecting to the agent…'}>
          {state === 'lost' ? 'Its GPUs appear here as soon as it is back.' : 'Its GPUs appear in a moment.'}
        </Empty>
      </Panel>
    )
  const sources = health.value
  const sick = sources.filter(({ message }) => message !== null)
  if (sources.some((source) => source.state === 'starting'))
    return (
      <Panel>
        <Empty title="Looking for GPUs…">The driver is being started; cold cards need some seconds.</Empty>
      </Panel>
    )
  return (
    <Panel>
      <Empty title="No GPU was found on this machine">
        Is the driver installed, and is the GPU passed into the container? <a href="#/settings">What the doctor says</a> (or{' '}
        <code>gpuwarden doctor</code>) names what is missing. To look around without a GPU: <code>gpuwarden monitor --source demo</code>.
      </Empty>
      {sick.length > 0 && (
        <ul class="small">
          {sick.map(({ source, message }) => (
            <li key={source}>
              {source}: {message}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function ActiveFindings() {
  const list = findings.value
  const { state } = link.value
  return (
    <Panel title="Findings" aside={<a href="#/alerts">Alerts</a>}>
      {list.length > 0 && state === 'lost' && <p class="small tone-critical">As of the last contact with the agent:</p>}
      {list.length === 0 && state !== 'live' ? (
        <Empty title="Not known">Findings appear as soon as the agent answers.</Empty>
      ) : list.length === 0 && isReplay.value ? (
        <Empty title="No active findings at this moment" />
      ) : list.length === 0 ? (
        <Empty title="No findings">Leaks, OOM forecasts, intruders, heat and stalled runs appear here.</Empty>
      ) : (
        <ul class="list">
          {list.slice(0, MOST_FINDINGS).map((finding) => (
            <FindingItem key={finding.fingerprint} finding={finding} isShort />
          ))}
        </ul>
      )}
      {list.length > MOST_FINDINGS && <a href="#/alerts">{list.length - MOST_FINDINGS} more</a>}
      {isReplay.value && <RecordedFindings />}
    </Panel>
  )
}
