/** The settings of a training, kept with its run: flat, bounded, and without secrets. */

export type Hyperparameter = string | number | boolean | null
export type Hyperparameters = Readonly<Record<string, Hyperparameter>>

export const MOST_HYPERPARAMETERS = 200
const LONGEST_NAME = 100
const LONGEST_TEXT = 200
const DEEPEST = 4
const MASKED = '***'

const SECRET_NAME =
  /(?:^|_)(?:password|passwd|pwd|secret|credentials?|(?:api|access|private|auth|secret|license|hub|ssh|account)_?key|apikey|auth)(?:_|$)|^key$/
const TOKEN_NAME = /(?:^|_)token$/
/** `pad_token: "<pad>"` is the vocabulary's. */
const WORD_TOKEN = /(?:^|_)(?:pad|eos|bos|unk|sep|cls|mask|image|audio|video|special|additional|stop|start|end|prefix|suffix|middle)_token$/
const SECRET_VALUE = /^(?:sk-|hf_|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|Bearer )|:\/\/[^/\s:@]*:[^/\s@]+@/

/** What is kept of what was sent: nested maps by `outer.inner`, anything but numbers, text, true, false and null as text. */
export function keptHyperparameters(given: unknown): Hyperparameters {
  const kept: Record<string, Hyperparameter> = {}
  if (isMap(given)) take(given, '', 0, kept)
  return kept
}

export function mergedHyperparameters(known: Hyperparameters, added: Hyperparameters): Hyperparameters {
  return Object.fromEntries(Object.entries({ ...known, ...added }).slice(0, MOST_HYPERPARAMETERS))
}

function take(map: Readonly<Record<string, unknown>>, before: string, depth: number, kept: Record<string, Hyperparameter>): void {
  for (const [key, value] of Object.entries(map)) {
    if (Object.keys(kept).length >= MOST_HYPERPARAMETERS) return
    const name = `${before}${key}`.slice(0, LONGEST_NAME)
    if (isMap(value) && depth < DEEPEST) take(value, `${name}.`, depth + 1, kept)
    else if (name !== '' && name !== '__proto__') kept[name] = masked(key, plain(value))
  }
}

function plain(value: unknown): Hyperparameter {
  if (value === null || value === undefined) return null
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return value
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT - 1)}…`
}

function masked(key: string, value: Hyperparameter): Hyperparameter {
  if (typeof value !== 'string' || value === '') return value
  const name = key
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase()
  const isSecret = SECRET_NAME.test(name) || (TOKEN_NAME.test(name) && !WORD_TOKEN.test(name)) || SECRET_VALUE.test(value)
  return isSecret ? MASKED : value
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
