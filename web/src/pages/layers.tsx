import '../style/layers.css'
import { numberOf } from '../../../src/core/known/revive.ts'
import { LAYER_FIGURE_NAMES, LAYER_FIGURES, type LayerFigureName, type Standout } from '../../../src/core/layer-figures.ts'
import { ask } from '../api.ts'
import { place, setQuery } from '../location.ts'
import { Empty, Fault, Panel } from '../parts/parts.tsx'
import { usePolled } from '../poll.ts'
import { HeatMap, valueText } from './layers/heat-map.tsx'

const REFRESH_MS = 10_000

interface LayersAnswer {
  readonly rank: number | null
  readonly ranks: readonly number[]
  readonly figure: LayerFigureName
  readonly figures: readonly LayerFigureName[]
  readonly layers: readonly string[]
  readonly steps: readonly number[]
  readonly stride: number
  readonly data: readonly (readonly unknown[])[]
  readonly standouts: readonly (Omit<Standout, 'value'> & { readonly value: unknown })[]
}

/** The layers of a run's model: `#/layers/RUN`. */
export function LayersPage() {
  const { parts, query } = place.value
  const id = parts[1] ?? ''
  const figure = LAYER_FIGURE_NAMES.find((name) => name === query.figure) ?? 'gradient_norm'
  const { answer, fault } = usePolled(
    `layers ${id} ${figure} ${query.rank ?? ''}`,
    (signal) => ask<LayersAnswer>(`/api/v1/runs/${encodeURIComponent(id)}/layers`, { figure, rank: query.rank }, { signal }),
    REFRESH_MS,
  ).value
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <p class="small">
            <a href="#/training">Training</a> <span class="faint">/</span> <a href={`#/training/${encodeURIComponent(id)}`}>{id}</a>
          </p>
          <h1>Layers</h1>
        </div>
      </div>
      <Fault text={fault} />
      {answer === null ? (
        fault === null && <p class="faint">Loading…</p>
      ) : answer.layers.length === 0 ? (
        <Panel>
          <Empty title="No layers were looked at">
            gpuwarden.watch(model) in the program, or gpuwarden run --watch-model, shows each layer every 100 steps.
          </Empty>
        </Panel>
      ) : (
        <Layers answer={answer} />
      )}
    </>
  )
}

function Layers({ answer }: { readonly answer: LayersAnswer }) {
  const { figure, figures, layers, steps, stride, rank, ranks } = answer
  const data = answer.data.map((row) => row.map(numberOf))
  return (
    <>
      <div class="toolbar">
        <label>
          Figure{' '}
          <select value={figure} onChange={(event) => setQuery({ figure: event.currentTarget.value })}>
            {figures.map((name) => (
              <option key={name} value={name}>
                {LAYER_FIGURES[name].label}
              </option>
            ))}
          </select>
        </label>
        {ranks.length > 1 && (
          <label>
            Rank{' '}
            <select value={String(rank)} onChange={(event) => setQuery({ rank: event.currentTarget.value })}>
              {ranks.map((one) => (
                <option key={one} value={String(one)}>
                  {one}
                </option>
              ))}
            </select>
          </label>
        )}
        <span class="small faint grow">{stride > 1 && `One of ${stride} looks is shown, and every one that was not finite.`}</span>
      </div>
      <Panel title="Layers that stand out">
        {answer.standouts.length === 0 ? (
          <Empty title="None differs much from the others" />
        ) : (
          <ul class="list">
            {answer.standouts.map(({ layer, figure: by, step, value, reason }) => (
              <li key={layer}>
                <button type="button" class="link" onClick={() => setQuery({ figure: by })}>
                  <b>{layer}</b>
                </button>{' '}
                {reason}
                {value !== null && `: ${LAYER_FIGURES[by].label.toLowerCase()} ${valueText(by, numberOf(value))}`}, step {step}
              </li>
            ))}
          </ul>
        )}
      </Panel>
      <Panel title={`${LAYER_FIGURES[figure].label}, by layer and step`}>
        <HeatMap figure={figure} layers={layers} steps={steps} data={data} />
      </Panel>
    </>
  )
}
