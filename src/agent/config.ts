/** The effective configuration: flags, then environment, then the YAML file, then defaults; one schema, made of each room's part. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Document, isMap, parseDocument } from 'yaml'
import { alertSettings } from '../alerts/settings.ts'
import { maskSecrets } from '../channels/secrets.ts'
import { channelSettings } from '../channels/settings.ts'
import { EXIT, Failure } from '../core/failure.ts'
import type { Setting, Settings, ValuesOf } from '../core/setting.ts'
import { refuseOtherThanFile } from '../core/system-file.ts'
import { detectorSettings } from '../detectors/settings.ts'
import { exporterSettings } from '../exporter/settings.ts'
import { pushSettings } from '../push/settings.ts'
import { samplerSettings, sourceSetting } from '../sampler/settings.ts'
import { serverSettings } from '../server/settings.ts'
import { VENDOR_NAMES } from '../sources/vendors.ts'
import { storeSettings } from '../store/settings.ts'
import { trainingSettings } from '../training/settings.ts'
import { usageSettings } from '../usage/settings.ts'
import { logSettings } from './log-settings.ts'

export const SETTINGS = {
  source: sourceSetting(VENDOR_NAMES),
  ...samplerSettings,
  ...serverSettings,
  ...exporterSettings,
  ...storeSettings,
  ...logSettings,
  ...detectorSettings,
  ...alertSettings,
  ...channelSettings,
  ...pushSettings,
  ...trainingSettings,
  ...usageSettings,
} satisfies Settings

export type ConfigKey = keyof typeof SETTINGS
export type ConfigValues = ValuesOf<typeof SETTINGS>

export type Origin = { readonly from: 'flag' | 'environment' | 'file' | 'default'; readonly name: string }

export interface Config {
  readonly values: ConfigValues
  readonly origins: Readonly<Record<ConfigKey, Origin>>
  readonly file: string | null
  /** Things that are probably not what was meant, such as an unknown GPUWARDEN_ variable. */
  readonly warnings: readonly string[]
}

/** Variables that begin with our prefix and belong to somebody else: the SDK and the program itself. */
export const OTHER_VARIABLES =
  /^GPUWARDEN_(CONFIG|URL|TOKEN|TOKEN_FILE|NO_START|NO_RECORDING|NO_HOOKS|NO_TRACKERS|NO_MODEL|NO_STACKS|WATCH_MODEL|GRAD_NORM|PROGRAM|LAUNCHER|NODE|UNPACK_DIR|SNAPSHOTS|RUN_ID|RUN_NAME|RANK|SPOOL|CORRELATION_ID|SKIP_BUILD|TEST_.*|DISABLED|DEV_AGENT)$/

const MOST_ALIASES = 10

export const KEYS = Object.keys(SETTINGS) as ConfigKey[]

export function variableOf(key: string): string {
  return `GPUWARDEN_${key.replaceAll('.', '_').toUpperCase()}`
}

/** Flag values by key, as commander gives them: strings, lists of strings, or booleans. */
export type FlagValues = Partial<Record<ConfigKey, unknown>>

interface Found {
  readonly raw: unknown
  readonly origin: Origin
}

export function loadConfig(input: { flags?: FlagValues; env?: NodeJS.ProcessEnv; file?: string | undefined } = {}): Config {
  const env = input.env ?? process.env
  const file = findFile(input.file, env)
  const fromFile = file === null ? new Map<string, unknown>() : readFile(file)
  const values: Record<string, unknown> = {}
  const origins: Record<string, Origin> = {}
  for (const key of KEYS) {
    const entry: Setting = SETTINGS[key]
    const found = findFlag(key, entry, input.flags) ?? findVariable(key, entry, env) ?? findInFile(key, fromFile, file)
    origins[key] = found?.origin ?? { from: 'default', name: 'default' }
    values[key] = found ? check(key, entry, found) : entry.default
  }
  if (configuredOnlyBySeedVariables(origins)) {
    values.interval = 60
    origins.interval = { from: 'default', name: 'default if only MONITORING_INTERVAL, THRESHOLD and the mail variables are set' }
  }
  const warnings = [...unknownVariables(env), ...openSecrets(file, fromFile)]
  return { values: values as ConfigValues, origins: origins as Record<ConfigKey, Origin>, file, warnings }
}

/** The first of the seeds' tools was configured by these alone and looked once a minute; other tools' variables, such as MLflow's, do not count. */
const SEED_VARIABLES = new Set([
  'MONITORING_INTERVAL',
  'THRESHOLD',
  'SMTP_SERVER',
  'SMTP_PORT',
  'EMAIL_ADDRESS',
  'EMAIL_PASSWORD',
  'TO_EMAILS',
])

function configuredOnlyBySeedVariables(origins: Readonly<Record<string, Origin>>): boolean {
  const given = Object.values(origins).filter((origin) => origin.from !== 'default')
  const bySeeds = given.filter((origin) => origin.from === 'environment' && SEED_VARIABLES.has(origin.name))
  const byOthers = given.filter((origin) => origin.from !== 'environment' || origin.name.startsWith('GPUWARDEN_'))
  return bySeeds.length > 0 && byOthers.length === 0 && origins.interval?.from === 'default'
}

function findFlag(key: ConfigKey, entry: Setting, flags: FlagValues | undefined): Found | null {
  const raw = flags?.[key]
  return raw === undefined ? null : { raw, origin: { from: 'flag', name: entry.flag?.split(' ')[0] ?? key } }
}

function findVariable(key: ConfigKey, entry: Setting, env: NodeJS.ProcessEnv): Found | null {
  for (const name of [variableOf(key), ...(entry.env ? [entry.env] : [])]) {
    const raw = env[name]
    if (raw !== undefined && raw !== '') return { raw, origin: { from: 'environment', name } }
  }
  return null
}

function findInFile(key: ConfigKey, values: ReadonlyMap<string, unknown>, file: string | null): Found | null {
  return values.has(key) ? { raw: values.get(key), origin: { from: 'file', name: file ?? '' } } : null
}

/** Text from a flag or variable is read as what the schema wants: text, number, yes/no, or a list with commas. */
function readings(raw: unknown): unknown[] {
  if (Array.isArray(raw)) {
    // `--devices 0 1` and `--devices 0,1` are the same.
    const items = raw.flatMap((item) => (typeof item === 'string' ? item.split(',').filter((part) => part.trim() !== '') : [item]))
    return [raw, items.map((item) => readings(item).at(-1))]
  }
  if (typeof raw !== 'string') return [raw]
  const text = raw.trim()
  const all: unknown[] = [raw]
  if (/^(true|yes|on|1)$/i.test(text)) all.push(true)
  if (/^(false|no|off|0)$/i.test(text)) all.push(false)
  const list = text.split(/[\s,]+/).filter((item) => item !== '')
  all.push(list)
  if (list.every((item) => Number.isFinite(Number(item)))) all.push(list.map(Number))
  if (/^(null|none)$/i.test(text)) all.push(null)
  if (text !== '' && Number.isFinite(Number(text))) all.push(Number(text))
  return all
}

function check(key: ConfigKey, entry: Setting, found: Found): unknown {
  const tries = found.origin.from === 'file' ? [found.raw] : readings(found.raw)
  const results = tries.map((value) => entry.schema.safeParse(value))
  const good = results.find((result) => result.success)
  if (good?.success) return good.data
  // Of several readings the one of the right type says best what is wrong with it.
  const issues = results.flatMap((result) => result.error?.issues[0] ?? [])
  const issue = issues.find((one) => one.code !== 'invalid_type') ?? issues.toSorted((a, b) => b.path.length - a.path.length)[0]
  const expected = issue?.message.replace(/^Invalid input: (expected .*), received .*$/, '$1') ?? 'not valid'
  const shown = entry.secret ? '(hidden)' : JSON.stringify(found.raw)
  throw new Failure(`${key} (from ${describeOrigin(found.origin)}): ${expected}; got ${shown}`, {
    exitCode: EXIT.usage,
    hint: `${key}: ${entry.help.replace(/\.$/, '')}. Default: ${JSON.stringify(entry.default)}. Other ways to set it: ${variableOf(key)}, or "${key}" in the configuration file.`,
  })
}

export function describeOrigin(origin: Origin): string {
  return origin.from === 'default' ? origin.name : `${origin.from} ${origin.name}`
}

function findFile(given: string | undefined, env: NodeJS.ProcessEnv): string | null {
  const named = given ?? (env.GPUWARDEN_CONFIG || undefined)
  if (named !== undefined) {
    if (existsSync(named)) return named
    throw new Failure(`configuration file "${named}" does not exist`, {
      exitCode: EXIT.usage,
      hint: 'Check the path given by --config or GPUWARDEN_CONFIG.',
    })
  }
  const places = [join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'gpuwarden', 'gpuwarden.yaml'), '/etc/gpuwarden/gpuwarden.yaml']
  return places.find((place) => existsSync(place)) ?? null
}

function readFile(file: string): Map<string, unknown> {
  let text: string
  try {
    if (!isStream(file)) refuseOtherThanFile(file)
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    throw new Failure(`configuration file "${file}" cannot be read: ${(cause as Error).message}`, { exitCode: EXIT.usage, cause })
  }
  const document = parseDocument(text, { prettyErrors: true })
  const error = document.errors[0]
  if (error) throw new Failure(`configuration file "${file}" is not valid YAML: ${error.message}`, { exitCode: EXIT.usage })
  if (document.contents === null) return new Map()
  if (!isMap(document.contents))
    throw new Failure(`configuration file "${file}": expected keys and values at the top level`, { exitCode: EXIT.usage })
  const values = new Map<string, unknown>()
  flatten(contentOf(document, file), '', values, file)
  return values
}

/** Aliases of aliases grow without bounds: a few hundred bytes would fill the memory. */
function contentOf(document: Document, file: string): object {
  try {
    return document.toJS({ maxAliasCount: MOST_ALIASES }) as object
  } catch (cause) {
    throw new Failure(`configuration file "${file}" uses YAML aliases too often: ${(cause as Error).message}`, {
      exitCode: EXIT.usage,
      hint: 'Write the values out instead of *name.',
      cause,
    })
  }
}

/** `--config <(…)` and /dev/stdin have a writer at the other end, and /dev/null an end. */
function isStream(file: string): boolean {
  return /^\/(dev\/(fd\/|stdin$|null$)|proc\/)/.test(file)
}

/** A file with a password in it that everybody on the machine may read. */
function openSecrets(file: string | null, values: ReadonlyMap<string, unknown>): string[] {
  if (file === null || process.platform === 'win32' || isStream(file) || (statSync(file).mode & 0o004) === 0) return []
  const keys = [...values].filter(([key, value]) => holdsSecret(SETTINGS[key as ConfigKey], value)).map(([key]) => key)
  if (keys.length === 0) return []
  return [`configuration file ${file} holds secrets (${keys.join(', ')}) and every user of this machine may read it: run chmod o-r ${file}`]
}

function holdsSecret({ secret }: Setting, value: unknown): boolean {
  return secret === true && !isDeepStrictEqual(maskSecrets(value, 'secret'), value)
}

function flatten(node: object, prefix: string, into: Map<string, unknown>, file: string): void {
  for (const [name, value] of Object.entries(node)) {
    const key = prefix + name
    if (Object.hasOwn(SETTINGS, key)) into.set(key, value)
    else if (value !== null && typeof value === 'object' && !Array.isArray(value) && KEYS.some((known) => known.startsWith(`${key}.`)))
      flatten(value, `${key}.`, into, file)
    else
      throw new Failure(`configuration file "${file}": unknown key "${key}"${suggestion(key, KEYS)}`, {
        exitCode: EXIT.usage,
        hint: 'gpuwarden config lists every key.',
      })
  }
}

function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  const known = new Set(KEYS.map(variableOf))
  return Object.keys(env)
    .filter((name) => name.startsWith('GPUWARDEN_') && !known.has(name) && !OTHER_VARIABLES.test(name))
    .map((name) => `unknown variable ${name} is ignored${suggestion(name, [...known])}`)
}

function suggestion(name: string, known: readonly string[]): string {
  const ranked = known.map((candidate) => ({ candidate, distance: editDistance(name, candidate) })).sort((a, b) => a.distance - b.distance)
  const best = ranked[0]
  return best && best.distance <= Math.max(2, name.length / 4) ? `; did you mean "${best.candidate}"?` : ''
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
