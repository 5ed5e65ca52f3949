/** What people steer a run by: tokens a second, MFU, goodput, energy and money. */
import { peakFlops } from '../../../../src/core/card-peaks.ts'
import { listPrice } from '../../../../src/core/gpu-price.ts'
import { numberOf } from '../../../../src/core/json-text.ts'
import { isGpuOfRun } from '../../../../src/core/known/about-gpu.ts'
import type { Reading } from '../../../../src/core/model.ts'
import { mfuOf, per1000 } from '../../../../src/core/model-work.ts'
import { lostParts, type RunTime, TIME_PARTS, TIME_WORDS } from '../../../../src/core/run-time.ts'
import type { RunAnswer } from '../../answers.ts'
import { gpus } from '../../live/store.ts'
import { Fact, Meter, Panel } from '../../parts/parts.tsx'
import { formatAge, formatFigure, formatPercent, NOT_AVAILABLE } from '../../words.ts'

export function RunFigures({ run }: { readonly run: RunAnswer }) {
  const told = (name: string): Reading => numberOf(run.training?.[name])
  const time = (run.training?.time ?? null) as RunTime | null
  if (time === null || told('lastStep') === null) return null
  const { model = null } = run
  const cells = gpus.value.filter((cell) => run.gpus.some((name) => isGpuOfRun(cell.info.value, name)))
  const pace = { samplesPerSecond: told('meanThroughputPerSecond'), tokensPerSecond: told('meanTokensPerSecond') }
  const mfu = mfuOf(model, pace, peakFlops(cells[0]?.info.value.name ?? null, model?.computeType ?? null))
  const all = allRanks(run, time)
  const isRunning = run.endedAt === null
  const joules = isRunning ? per1000(sumOf(cells.map((cell) => cell.sample.value?.powerWatts ?? null)), all) : null
  const price = sumOf(cells.map((cell) => listPrice(cell.info.value.name)))
  const dollars = per1000(price === null ? null : price / 3600, all)
  return (
    <Panel title="Efficiency">
      <div class="facts">
        {pace.tokensPerSecond !== null && (
          <Fact label="Tokens/s" title="Mean of one rank">
            {formatFigure(pace.tokensPerSecond)}
          </Fact>
        )}
        <Fact label="MFU" title="What the model needs ÷ what the card can compute, without sparsity">
          {mfu === null ? <small class="faint">{whyNoMfu(run, cells.length > 0)}</small> : formatPercent(mfu)}
        </Fact>
        <Fact label="Goodput" title="Productive share of the wall time">
          {formatPercent(time.goodputRatio)}
        </Fact>
        {joules && (
          <Fact label={`Energy per 1,000 ${joules.of}`} title="By the power of its GPUs now">
            {formatFigure(joules.value)} J
          </Fact>
        )}
        {dollars && (
          <Fact label={`Cost per 1,000 ${dollars.of}`} title="By a list price of its GPUs">
            ${dollars.value.toPrecision(2)}
          </Fact>
        )}
        {model?.parameters != null && (
          <Fact label="Parameters" title="Those in brackets work on each token or sample">
            {short(model.parameters)}
            {model.activeParameters !== null && <small class="faint"> ({short(model.activeParameters)})</small>}
          </Fact>
        )}
      </div>
      <Spent time={time} />
    </Panel>
  )
}

function Spent({ time }: { readonly time: RunTime }) {
  const parts = TIME_PARTS.map((part, index) => ({
    ratio: time.wallSeconds > 0 ? (time.seconds[part] ?? 0) / time.wallSeconds : 0,
    fill: part === 'hang' ? 'fill-critical' : `fill-${index + 1}`,
    label: TIME_WORDS[part],
  }))
  const lost = lostParts(time).map(
    ({ part, ratio }) => `${TIME_WORDS[part]} ${formatPercent(ratio)} (${formatAge((time.seconds[part] ?? 0) * 1000)})`,
  )
  const text = `productive ${formatPercent(time.goodputRatio)}${lost.length === 0 ? '' : `, ${lost.join(', ')}`}`
  return (
    <>
      <Meter parts={parts} label="What the wall time went to" value={text} />
      <p class="small">
        Of {formatAge(time.wallSeconds * 1000)}: {text}.
        {time.seconds.data === null && <span class="faint"> Waiting for data, checkpoints and evaluation are not measured.</span>}
      </p>
    </>
  )
}

/** Samples and tokens a second of all ranks together, while steps were taken. */
function allRanks({ training }: RunAnswer, { seconds }: RunTime): { readonly samples: Reading; readonly tokens: Reading } {
  const stepped = ['productive', 'data', 'checkpoint', 'evaluation', 'repeated'] as const
  const spent = stepped.reduce((sum, part) => sum + (seconds[part] ?? 0), 0)
  const pace = (name: string) => {
    const count = numberOf(training?.[name])
    return count === null || !(spent > 0) ? null : count / spent
  }
  return { samples: pace('samples'), tokens: pace('tokens') }
}

function whyNoMfu({ model }: RunAnswer, isCardKnown: boolean): string {
  if (!model || (model.flopsPerToken === null && model.flopsPerSample === null)) return 'model not counted'
  return isCardKnown ? 'peak of the card not known' : NOT_AVAILABLE
}

function sumOf(values: readonly Reading[]): Reading {
  return values.reduce<Reading>((sum, value) => (value === null ? sum : (sum ?? 0) + value), null)
}

/** `7.6 B`, `124 M` */
function short(count: number): string {
  return count >= 1e9 ? `${formatFigure(count / 1e9)} B` : count >= 1e6 ? `${formatFigure(count / 1e6)} M` : formatFigure(count)
}
