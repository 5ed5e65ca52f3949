/** Too hot: compared with the slowdown temperature of the card itself, not with a fixed number. */
import type { DetectorKind } from '../core/detector-contract.ts'
import type { Finding, GpuInfo, Reading, Severity } from '../core/model.ts'
import { evidenceLevel } from './charts.ts'
import { NO_FINDINGS } from './finding.ts'
import { type GpuFacts, gpuName, subjectOfGpu, watchGpus } from './gpu-watch.ts'
import { held, type Span, span } from './span.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

interface ThermalState {
  readonly critical: Span
  readonly warning: Span
  readonly notice: Span
  /** Severity of the open finding, for hysteresis. */
  said: Severity | null
}

const ADVICE = ['Check fans, airflow, filters and room temperature.', 'Lower the power limit until the cause is found (nvidia-smi -pl).']

export const thermal: DetectorKind<Thresholds<'thermal'>> = {
  name: 'thermal',
  about: 'A GPU is hot, compared with the temperature at which the card slows itself down.',
  severities: ['info', 'warning', 'critical'],
  inputs: ['gpu', 'device'],
  findsAgainSeconds: 60,
  charts: [{ of: 'gpu', field: 'temperatureCelsius', title: 'GPU temperature', unit: 'celsius', limit: slowdownLevel }],
  defaults: THRESHOLDS.thermal,
  // On a card that does not report its limit the notice level is all there is, so it alerts.
  alertSeverity: ({ severity, evidence }) => (severity === 'info' && evidence.limit_known === false ? 'warning' : severity),
  create: (options) =>
    watchGpus<ThermalState>('thermal', {
      initial: () => ({ critical: span(), warning: span(), notice: span(), said: null }),
      sample(gpu, sample, _processes, book) {
        const { facts, time, state } = gpu
        const limit = facts?.slowdownCelsius ?? facts?.maxCelsius ?? options.fallbackCelsius
        const core = sample.temperatureCelsius
        const junction = sample.junctionTemperatureCelsius
        const memory = sample.memoryTemperatureCelsius
        if (core === null && junction === null && memory === null) return NO_FINDINGS
        const junctionOver = over(junction, facts?.junctionMaxCelsius ?? null)
        const margin = Math.max(over(core, limit), junctionOver, over(memory, facts?.memoryMaxCelsius ?? null))
        const open = state.said
        const slackFor = (severity: Severity) => (open === severity ? options.hysteresisCelsius : 0)
        const criticalMs = held(state.critical, margin >= -slackFor('critical'), time.ms)
        const warningMs = held(state.warning, margin >= -options.marginCelsius - slackFor('warning'), time.ms)
        const noticeMs = held(state.notice, core !== null && core >= options.noticeCelsius - slackFor('info'), time.ms)
        if (warningMs < 0 && noticeMs < 0) {
          if (open === null) return NO_FINDINGS
          state.said = null
          return book.resolve(
            book.key(subjectOfGpu(gpu)),
            sample.at,
            `${gpuName(gpu)} has cooled down to ${core ?? junction ?? memory} °C.`,
          )
        }
        const severity = severityOf(criticalMs, warningMs, noticeMs, options)
        if (severity === null) return NO_FINDINGS
        const subject = subjectOfGpu(gpu)
        state.said = severity
        if (!book.due(book.key(subject), sample.at, severity)) return NO_FINDINGS
        const limitKnown = facts !== null && (facts.slowdownCelsius !== null || facts.maxCelsius !== null)
        return book.raise(subject, sample.at, {
          severity,
          since: sample.at - Math.max(criticalMs, warningMs, noticeMs),
          message: `${gpuName(gpu)} is at ${temperatures(core, junction, memory)}; ${junctionOver > over(core, limit) ? `that spot is limited to ${facts?.junctionMaxCelsius} °C` : against(facts, limit)}.`,
          evidence: {
            temperature_celsius: core,
            memory_temperature_celsius: memory,
            ...(junction === null
              ? {}
              : { junction_temperature_celsius: junction, junction_limit_celsius: facts?.junctionMaxCelsius ?? null }),
            limit_celsius: limit,
            limit_known: limitKnown,
            memory_limit_celsius: facts?.memoryMaxCelsius ?? null,
          },
          confidence: limitKnown ? 0.95 : 0.6,
          advice: severity === 'info' ? [] : ADVICE,
        })
      },
    }),
}

function over(temperature: Reading, limit: Reading): number {
  return temperature === null || limit === null ? Number.NEGATIVE_INFINITY : temperature - limit
}

/** The limit that the finding was judged by, else the card's own. */
function slowdownLevel(finding: Finding, info: GpuInfo | undefined): Reading {
  return evidenceLevel('limit_celsius')(finding, info) ?? info?.temperatureSlowdownCelsius ?? null
}

function severityOf(criticalMs: number, warningMs: number, noticeMs: number, options: Thresholds<'thermal'>): Severity | null {
  if (criticalMs >= options.criticalHoldSeconds * 1000) return 'critical'
  if (warningMs >= options.holdSeconds * 1000) return 'warning'
  return noticeMs >= options.holdSeconds * 1000 ? 'info' : null
}

function temperatures(core: Reading, junction: Reading, memory: Reading): string {
  const parts = [
    ...(core === null ? [] : [`${core} °C`]),
    ...(junction === null || junction === core ? [] : [`${core === null ? '' : 'its hottest spot at '}${junction} °C`]),
    ...(memory === null ? [] : [core === null && junction === null ? `${memory} °C (memory)` : `its memory at ${memory} °C`]),
  ]
  return parts.join(', ')
}

function against(facts: GpuFacts | null, limit: number): string {
  if (typeof facts?.slowdownCelsius === 'number') return `it slows itself down at ${limit} °C`
  if (typeof facts?.maxCelsius === 'number') return `its maximum operating temperature is ${limit} °C`
  return `the card does not report its limit, so ${limit} °C is assumed`
}
