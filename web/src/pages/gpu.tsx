import { isAboutGpu } from '../../../src/core/known/about-gpu.ts'
import '../style/gpu.css'
import type { GpuInfo, GpuSample } from '../../../src/core/model.ts'
import type { GpuCell } from '../live/gpu-cell.ts'
import { present } from '../live/present.ts'
import { events, findings, gpuCell, gpus, runs } from '../live/store.ts'
import { go, place } from '../location.ts'
import { FindingItem } from '../parts/finding-item.tsx'
import { GpuChoice, GpuNotice } from '../parts/one-gpu.tsx'
import { Badge, Empty, Fact, Panel, ScrollBox } from '../parts/parts.tsx'
import { RangePicker } from '../parts/range-picker.tsx'
import { currentRange } from '../time-range.ts'
import {
  clockReasons,
  clockTime,
  formatBytes,
  formatMegahertz,
  formatPercent,
  formatRate,
  formatUsed,
  formatWatts,
  formatWhole,
  heatTone,
  memoryTone,
  NOT_AVAILABLE,
  placeOf,
  powerTone,
  shortModel,
  temperatureTone,
} from '../words.ts'
import { About, Links } from './gpu/about.tsx'
import { GpuCharts } from './gpu/charts.tsx'
import { KnownFacts } from './gpu/known-facts.tsx'

export function GpuPage() {
  const name = place.value.parts[1] ?? '0'
  const cell = gpuCell(name)
  if (!cell)
    return (
      <Panel>
        <Empty title={gpus.value.length === 0 ? 'No GPU is known yet' : `There is no GPU ${name}`}>
          {gpus.value.length === 0
            ? 'It appears with the first reading.'
            : `There are: ${gpus.value.map((one) => one.info.value.label).join(', ')}.`}
        </Empty>
      </Panel>
    )
  return <OneGpu key={cell.id} cell={cell} />
}

function OneGpu({ cell }: { readonly cell: GpuCell }) {
  const info = cell.info.value
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>
            GPU {info.label} <span class="faint">{shortModel(info)}</span>
          </h1>
          <p class="small faint mono cut" title={info.id}>
            {info.id} · {info.pciBusId ?? NOT_AVAILABLE}
          </p>
        </div>
        <GpuChoice current={info.label} onChoose={(label) => go(['gpu', label], place.peek().query)} />
        <RangePicker />
      </div>
      <GpuNotice cell={cell} />
      <Now cell={cell} />
      <GpuCharts cell={cell} range={currentRange()} />
      <div class="grid gpu-notes">
        <Findings cell={cell} />
        <Users cell={cell} />
        <Events cell={cell} />
        <Links info={info} />
        <About info={info} />
      </div>
    </>
  )
}

function Now({ cell }: { readonly cell: GpuCell }) {
  const sample = cell.sample.value
  const info = cell.info.value
  if (!sample) return null
  const isLive = cell.freshness.value.kind === 'live'
  const memory = sample.memoryUsedBytes === null || !info.memoryTotalBytes ? null : sample.memoryUsedBytes / info.memoryTotalBytes
  const reasons = clockReasons(sample.clockEventReasons).filter(({ words }) => words !== 'idle')
  return (
    <Panel>
      <div class={`facts gpu-now ${isLive ? '' : 'stale'}`}>
        <Fact label="Utilization">{formatPercent(sample.utilizationRatio)}</Fact>
        <Fact label={info.unifiedMemory ? 'Memory of the host' : 'Memory'} tone={memoryTone(memory)}>
          {formatUsed(sample.memoryUsedBytes, info.memoryTotalBytes)}
        </Fact>
        <Fact label="Temperature" tone={temperatureTone(sample.temperatureCelsius, info)}>
          {formatWhole(sample.temperatureCelsius, '°C')}
          {info.temperatureSlowdownCelsius !== null && <small class="faint"> of {info.temperatureSlowdownCelsius}</small>}
          {sample.temperatureMarginCelsius !== null && <small class="faint"> ({sample.temperatureMarginCelsius} to its limit)</small>}
        </Fact>
        {sample.junctionTemperatureCelsius !== null && (
          <Fact label="Hottest spot" tone={heatTone(sample.junctionTemperatureCelsius, info.junctionTemperatureMaxCelsius)}>
            {formatWhole(sample.junctionTemperatureCelsius, '°C')}
            {info.junctionTemperatureMaxCelsius !== null && <small class="faint"> of {info.junctionTemperatureMaxCelsius}</small>}
          </Fact>
        )}
        <Fact label="Power" tone={powerTone(sample.powerWatts, info)}>
          {formatWatts(sample.powerWatts)}
          {info.powerLimitWatts !== null && <small class="faint"> of {Math.round(info.powerLimitWatts)}</small>}
        </Fact>
        <Fact label="GPU clock">{formatMegahertz(sample.smClockHertz)}</Fact>
        <Fact label="Memory clock">{formatMegahertz(sample.memoryClockHertz)}</Fact>
        {sample.performanceState !== null && <Fact label="Performance state">P{sample.performanceState}</Fact>}
        <Fact label="Fan">{fan(sample)}</Fact>
        <Fact label="PCIe">{link(sample, info)}</Fact>
        {sample.xgmiRxBytesPerSecond !== null && (
          <Fact label="XGMI">{formatRate(sample.xgmiRxBytesPerSecond + (sample.xgmiTxBytesPerSecond ?? 0))}</Fact>
        )}
        {sample.xcd0ActiveRatio !== null && <Fact label="Compute dies (XCD)">{dies(sample)}</Fact>}
        {sample.nvlinkRxBytesPerSecond !== null && (
          <Fact label="NVLink">{formatRate(sample.nvlinkRxBytesPerSecond + (sample.nvlinkTxBytesPerSecond ?? 0))}</Fact>
        )}
        <KnownFacts sample={sample} info={info} />
        <Fact label="Clocks limited by">
          {sample.clockEventReasons === null
            ? NOT_AVAILABLE
            : reasons.length === 0
              ? 'nothing'
              : reasons.map(({ words, tone }) => (
                  <Badge key={words} tone={tone}>
                    {words}
                  </Badge>
                ))}
        </Fact>
      </div>
    </Panel>
  )
}

function dies(sample: GpuSample): string {
  const { xcd0ActiveRatio, xcd1ActiveRatio, xcd2ActiveRatio, xcd3ActiveRatio } = sample
  const { xcd4ActiveRatio, xcd5ActiveRatio, xcd6ActiveRatio, xcd7ActiveRatio } = sample
  const first = [xcd0ActiveRatio, xcd1ActiveRatio, xcd2ActiveRatio, xcd3ActiveRatio]
  return [...first, xcd4ActiveRatio, xcd5ActiveRatio, xcd6ActiveRatio, xcd7ActiveRatio]
    .flatMap((ratio) => (ratio === null ? [] : formatPercent(ratio)))
    .join(' ')
}

function fan({ fanRatio, fanRpm }: GpuSample): string {
  return fanRatio === null && fanRpm !== null ? `${fanRpm} rpm` : formatPercent(fanRatio)
}

function link({ pcieGeneration, pcieWidth }: GpuSample, { pcieGenerationMax, pcieWidthMax }: GpuInfo): string {
  if (pcieGeneration === null || pcieWidth === null) return NOT_AVAILABLE
  const isFull = pcieGeneration === pcieGenerationMax && pcieWidth === pcieWidthMax
  const most = isFull || pcieGenerationMax === null || pcieWidthMax === null ? '' : ` (of ${pcieGenerationMax}.0 ×${pcieWidthMax})`
  return `${pcieGeneration}.0 ×${pcieWidth}${most}`
}

function Findings({ cell }: { readonly cell: GpuCell }) {
  const own = findings.value.filter(({ subject }) => isAboutGpu(subject, cell.info.value, runs.value))
  return (
    <Panel title="Findings">
      {own.length === 0 ? (
        <Empty title={cell.freshness.value.kind === 'live' ? 'No findings on this GPU' : 'Not known without current readings'} />
      ) : (
        <ul class="list">
          {own.map((finding) => (
            <FindingItem key={finding.fingerprint} finding={finding} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function Users({ cell }: { readonly cell: GpuCell }) {
  const list = [...cell.processes.value].sort((a, b) => (b.memoryUsedBytes ?? 0) - (a.memoryUsedBytes ?? 0))
  const isUnknown = cell.sample.value?.processes === null
  return (
    <Panel title="Processes" aside={<a href={`#/processes?gpu=${encodeURIComponent(cell.info.value.label)}`}>All details</a>}>
      {isUnknown ? (
        <Empty title="The driver does not say who uses this GPU" />
      ) : list.length === 0 ? (
        <Empty title="No process uses this GPU" />
      ) : (
        <ScrollBox label="Processes of this GPU">
          <table>
            <thead>
              <tr>
                <th class="number">PID</th>
                <th>User</th>
                <th class="number">Memory</th>
                <th class="number">GPU</th>
                <th>Command</th>
              </tr>
            </thead>
            <tbody>
              {list.map((process) => (
                <tr key={process.pid}>
                  <td class="number mono">{process.pid}</td>
                  <td>{process.info?.user ?? 'unknown'}</td>
                  <td class="number">{formatBytes(process.memoryUsedBytes)}</td>
                  <td class="number">{formatPercent(process.smRatio)}</td>
                  <td class="command cut" title={process.info?.command?.join(' ') ?? ''}>
                    {placeOf(process) !== null && <Badge>{placeOf(process)}</Badge>}{' '}
                    {process.info?.command?.join(' ') ?? process.info?.name ?? NOT_AVAILABLE}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollBox>
      )}
    </Panel>
  )
}

function Events({ cell }: { readonly cell: GpuCell }) {
  const own = events.value
    .filter(({ gpu }) => gpu === cell.id)
    .slice(-12)
    .reverse()
  return (
    <Panel title="Events">
      {own.length === 0 ? (
        <Empty title="No events from the driver">Errors that it reports and lost GPUs appear here.</Empty>
      ) : (
        <ul class="list small">
          {own.map((event) => (
            <li key={`${event.at}${event.event}${event.code}`} class="event">
              <time class="faint nowrap">{clockTime(event.at, present())}</time>
              <span>
                <b>{event.event === 'xid' ? `XID ${event.code ?? ''}` : event.event.replaceAll('_', ' ')}</b> {event.message}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}
