/** MLflow's REST API: system metrics of the GPUs and the host under the names that MLflow itself uses. */
import { outcomeOf, splitCredentials } from './http-post.ts'
import type { Outcome } from './outbox.ts'

export interface MlflowMetric {
  readonly key: string
  readonly value: number
  readonly timestamp: number
  readonly step: number
}

export interface MlflowOptions {
  readonly url: string
  /** null: a run is made in `experiment`. */
  readonly runId: string | null
  readonly experiment: string
  readonly username: string | null
  readonly password: string | null
  readonly token: string | null
  readonly runName: string
  readonly now: () => number
}

export const MOST_METRICS = 1000

class Refused extends Error {
  readonly outcome: Outcome & { ok: false }
  readonly code: string | null

  constructor(outcome: Outcome & { ok: false }, code: string | null) {
    super(outcome.reason)
    this.outcome = outcome
    this.code = code
  }
}

export class MlflowClient {
  readonly #options: MlflowOptions
  readonly #base: string
  readonly #headers: Record<string, string>
  #runId: string | null
  #ownRun = false

  constructor(options: MlflowOptions) {
    this.#options = options
    this.#runId = options.runId
    const { target, authorization } = splitCredentials(options.url)
    this.#base = `${target.replace(/\/+$/, '')}/api/2.0/mlflow`
    this.#headers = { 'content-type': 'application/json', ...authorization, ...authorizationOf(options) }
  }

  get runId(): string | null {
    return this.#runId
  }

  async logBatch(metrics: readonly MlflowMetric[], signal: AbortSignal): Promise<Outcome> {
    try {
      this.#runId ??= await this.#createRun(signal)
      await this.#call('POST', 'runs/log-batch', { run_id: this.#runId, metrics }, signal)
      return { ok: true }
    } catch (error) {
      if (error instanceof Refused) return error.outcome
      throw error
    }
  }

  /** Ends the run, if it is ours to end. */
  async finish(signal: AbortSignal): Promise<void> {
    if (!this.#ownRun || this.#runId === null) return
    const body = { run_id: this.#runId, status: 'FINISHED', end_time: this.#options.now() }
    await this.#call('POST', 'runs/update', body, signal)
  }

  async #createRun(signal: AbortSignal): Promise<string> {
    const answer = await this.#call(
      'POST',
      'runs/create',
      {
        experiment_id: await this.#experimentId(signal),
        run_name: this.#options.runName,
        start_time: this.#options.now(),
        tags: [{ key: 'mlflow.source.name', value: 'gpuwarden' }],
      },
      signal,
    )
    this.#ownRun = true
    return textAt(answer, 'run', 'info', 'run_id')
  }

  async #experimentId(signal: AbortSignal): Promise<string> {
    const name = this.#options.experiment
    try {
      const answer = await this.#call('GET', `experiments/get-by-name?experiment_name=${encodeURIComponent(name)}`, null, signal)
      return textAt(answer, 'experiment', 'experiment_id')
    } catch (error) {
      if (!(error instanceof Refused && error.code === 'RESOURCE_DOES_NOT_EXIST')) throw error
      return textAt(await this.#call('POST', 'experiments/create', { name }, signal), 'experiment_id')
    }
  }

  async #call(method: 'GET' | 'POST', path: string, body: object | null, signal: AbortSignal): Promise<unknown> {
    const answer = await fetch(`${this.#base}/${path}`, {
      method,
      headers: this.#headers,
      signal,
      redirect: 'manual',
      ...(body === null ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    const outcome = outcomeOf(answer.status, text, answer.headers.get('retry-after'))
    if (!outcome.ok) throw new Refused(outcome, errorCode(text))
    return text === '' ? {} : JSON.parse(text)
  }
}

function authorizationOf({ token, username, password }: MlflowOptions): Record<string, string> {
  if (token !== null) return { authorization: `Bearer ${token}` }
  if (username === null) return {}
  return { authorization: `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}` }
}

function errorCode(text: string): string | null {
  try {
    const code = (JSON.parse(text) as { error_code?: unknown }).error_code
    return typeof code === 'string' ? code : null
  } catch {
    // A proxy in between answers in HTML.
    return null
  }
}

function textAt(answer: unknown, ...path: readonly string[]): string {
  let value = answer
  for (const name of path) value = (value as Record<string, unknown> | null | undefined)?.[name]
  if (typeof value === 'string' && value !== '') return value
  throw new Error(`MLflow's answer has no ${path.join('.')}: ${JSON.stringify(answer)?.slice(0, 200)}`)
}
