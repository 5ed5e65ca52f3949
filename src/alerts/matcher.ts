/** Picks alerts by what they are about: `gpu=0`, `severity!=critical`, `user=~stud.*`. */
import { EXIT, Failure } from '../core/failure.ts'
import type { Finding } from '../core/model.ts'

export const MATCHER_NAMES = ['detector', 'severity', 'gpu', 'user', 'run', 'host', 'fingerprint'] as const
export type MatcherName = (typeof MATCHER_NAMES)[number]
export const MATCHER_OPERATORS = ['=', '!=', '=~'] as const
export type MatcherOperator = (typeof MATCHER_OPERATORS)[number]

export interface Matcher {
  readonly name: MatcherName
  readonly operator: MatcherOperator
  readonly value: string
}

/** What an alert is about, with every name of its GPU. */
export interface MatchSubject {
  readonly finding: Finding
  readonly gpuLabel: string | null
  /** The owner, where the finding itself does not say. */
  readonly user?: string | null
}

const LONGEST_VALUE = 300

export function parseMatcher(text: string): Matcher {
  const parts = /^\s*(\w+)\s*(=~|!=|=)\s*(.*?)\s*$/.exec(text)
  if (!parts) throw wrong(`"${text}" is not a matcher; expected NAME=VALUE, NAME!=VALUE or NAME=~PATTERN, such as gpu=0`)
  return checkMatcher({ name: parts[1] ?? '', operator: parts[2] ?? '', value: (parts[3] ?? '').replace(/^"(.*)"$/, '$1') })
}

/** Turns any input into a Matcher, or throws a Failure that says what is wrong. */
export function checkMatcher(given: { readonly name: string; readonly operator: string; readonly value: string }): Matcher {
  const name = MATCHER_NAMES.find((known) => known === given.name)
  if (!name) throw wrong(`"${given.name}" cannot be matched; expected one of ${MATCHER_NAMES.join(', ')}`)
  const operator = MATCHER_OPERATORS.find((known) => known === given.operator)
  if (!operator) throw wrong(`"${given.operator}" is not an operator; expected one of ${MATCHER_OPERATORS.join(' ')}`)
  if (typeof given.value !== 'string' || given.value.length > LONGEST_VALUE)
    throw wrong(`the value for ${name} must be text of at most ${LONGEST_VALUE} characters`)
  if (operator === '=~') pattern(given.value)
  return { name, operator, value: given.value }
}

/** True when every matcher agrees. An empty list matches nothing, so that an empty silence silences nothing. */
export function matchesAll(matchers: readonly Matcher[], subject: MatchSubject): boolean {
  return matchers.length > 0 && matchers.every((matcher) => matches(matcher, subject))
}

function matches({ name, operator, value }: Matcher, subject: MatchSubject): boolean {
  const values = valuesOf(name, subject)
  switch (operator) {
    case '=':
      return values.includes(value)
    case '!=':
      return !values.includes(value)
    case '=~': {
      const regular = pattern(value)
      return values.some((one) => regular.test(one))
    }
  }
}

/** Several, because a GPU has an index, a label and an identity. Unknown is the empty text. */
export function valuesOf(name: MatcherName, { finding, gpuLabel, user = null }: MatchSubject): readonly string[] {
  const { subject } = finding
  switch (name) {
    case 'gpu':
      return subject.gpu === null && subject.gpuIndex === null ? [''] : gpuNames(subject, gpuLabel)
    case 'detector':
    case 'severity':
    case 'fingerprint':
      return [finding[name]]
    case 'user':
      return [subject.user ?? user ?? '']
    default:
      return [subject[name] ?? '']
  }
}

function gpuNames({ gpu, gpuIndex }: Finding['subject'], label: string | null): string[] {
  return [gpuIndex === null ? null : String(gpuIndex), label, gpu].filter((name) => name !== null)
}

const patterns = new Map<string, RegExp>()

/** Patterns come over the API and run on every alert: those that can take forever are refused, not timed. */
function pattern(text: string): RegExp {
  const known = patterns.get(text)
  if (known) return known
  if (/\)[*+?{]/.test(text) || (text.match(/[*+{]/g)?.length ?? 0) > 3)
    throw wrong(`"${text}" may take too long to match: use at most three of * + {}, and none of them after a group`)
  try {
    const regular = new RegExp(`^(?:${text})$`, 'u')
    if (patterns.size > 1000) patterns.clear()
    patterns.set(text, regular)
    return regular
  } catch (cause) {
    throw wrong(`"${text}" is not a regular expression: ${(cause as Error).message}`)
  }
}

function wrong(message: string): Failure {
  return new Failure(message, { exitCode: EXIT.usage })
}
